module testbed.example/helper

go 1.26.0
