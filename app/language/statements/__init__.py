"""Facts by patterns: statements that people make about themselves, in English.

clauses         a message as clauses in which its writer states something
grammar, verbs  a clause of the first person, parsed and written in the third person
categories      the kind of fact that a clause states, None for no fact
instructions    standing instructions, and decisions that the assistant confirms
subjects        what a fact gives a value that is unique at a time, such as an employer
dates           relative dates as calendar dates
extraction      all of these together: `extract_statements`
"""
