"""Facts by patterns: explicit statements that users make about themselves, in nine languages.

patterns        the data files of resources/language/statements
extraction      `extract_statements`: what the writer of a message asserts, matched with them
"""
