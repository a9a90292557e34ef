"""Files to attach, written by hand: PNG images, and PDF with or without text."""

import struct
import zlib


def png(width: int = 40, height: int = 30, color: int = 120) -> bytes:
    """Return an image of one color."""
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


def pdf(text: str = "") -> bytes:
    """Return a PDF of one page; "" is one without text, as a scan is."""
    drawn = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET" if text else "0 0 100 100 re f"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources 6 0 R >>",
        f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Font << /F1 5 0 R >> >>",
    ]
    made, places = "%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    count = len(objects) + 1
    start = len(made)
    made += f"xref\n0 {count}\n0000000000 65535 f \n{table}"
    made += f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    return made.encode("latin-1")
