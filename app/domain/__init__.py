"""Domain values: frozen, typed, standard library only."""
