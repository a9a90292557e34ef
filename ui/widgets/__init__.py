"""Parts that know nothing of the program: they take plain values and emit signals."""
