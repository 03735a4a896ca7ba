"""The `harnesslab` command."""
