"""What comes in and goes out: foreign exports read, our own written and read back.

zip_reader     a zip's table of contents and members, trusting nothing it says of itself
archive        a file, zip or folder as named streams; nothing is ever unpacked
importers      streams to conversations in the source's own ids (`app.domain.transfer`)
importing      the run that stores what the importers yield; `adopting` makes it ours
exporting      the run that writes what is stored
own_format     our own JSON and JSONL; `markdown` for reading elsewhere
"""
