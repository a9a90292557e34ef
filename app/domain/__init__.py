"""The words of the program as values: frozen, typed, standard library only."""
