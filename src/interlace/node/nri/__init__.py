"""The device injector: an NRI plugin that gives containers the host devices that their Pod's annotations name."""
