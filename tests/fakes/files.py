"""Files to attach, written by hand: PNG images, and PDF with or without text."""

import struct
import zlib


def png(width: int = 40, height: int = 30, color: int = 120) -> bytes:
    rows = (b"\0" + bytes((color, 90, 30)) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def gif(frames: int = 1) -> bytes:
    """Return a GIF of one pixel with so many frames."""
    frame = b"\x21\xf9\x04\0\x0a\0\0\0" + b"\x2c\0\0\0\0\1\0\1\0\0\2\2\x44\1\0"
    return b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff" + frame * frames + b";"


def pdf(*texts: str, protected: bool = False) -> bytes:
    """Return a PDF with a page for each text, whose lines are below each other; "" is one like a scan.

    A protected one can be opened with a password that nobody knows.
    """
    pages = texts or ("",)
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
    shown = "/Parent 2 0 R /MediaBox [0 0 612 792] /Resources 4 0 R"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>", "<< /Font << /F1 3 0 R >> >>",
    ]  # fmt: skip
    for number, text in enumerate(pages):
        lines = " ".join(f"({line}) Tj T*" for line in text.split("\n"))
        drawn = f"BT /F1 12 Tf 14 TL 72 700 Td {lines} ET" if text else "0 0 100 100 re f"
        objects += [
            f"<< /Type /Page {shown} /Contents {6 + 2 * number} 0 R >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    lock = ""
    if protected:
        key = "<" + "5a" * 32 + ">"
        objects.append(f"<< /Filter /Standard /V 1 /R 2 /O {key} /U {key} /P -4 >>")
        lock = f" /Encrypt {len(objects)} 0 R /ID [<00> <00>]"
    made, places, size = ["%PDF-1.4\n"], [], 9
    for number, each in enumerate(objects, 1):
        places.append(size)
        made.append(f"{number} 0 obj\n{each}\nendobj\n")
        size += len(made[-1])
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    count = len(objects) + 1
    made.append(f"xref\n0 {count}\n0000000000 65535 f \n{table}")
    made.append(f"trailer\n<< /Size {count} /Root 1 0 R{lock} >>\nstartxref\n{size}\n%%EOF\n")
    return "".join(made).encode("latin-1")
