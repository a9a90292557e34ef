"""Parts of screens that know nothing of the program: plain values in, signals out."""
