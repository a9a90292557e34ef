"""Tools that a language model may call in a conversation: a module per group, one box for all."""
