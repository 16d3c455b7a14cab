"""Generated messages of NRI and ttrpc; ``README.md`` says how they were made."""
