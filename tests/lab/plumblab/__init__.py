"""The laboratory's own code. Python 3.9 or newer, standard library only."""
