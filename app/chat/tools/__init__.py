"""Tools that a language model may call: a module for each group, and the toolbox."""
