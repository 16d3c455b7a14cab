"""The ``interlace`` command: thin, each verb in a module that is imported only when it is used."""
