"""Text files read line by line, once it is known that they can be written back as they are."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import IO, Any

from cvxprivacy.errors import InputError

__all__ = ["EncodedText", "marked"]

CHUNK = 1 << 18  # bytes read, or characters written, at a time
LONGEST = 1 << 26  # characters of a line
MARKS = {  # UTF-32 first: the little-endian mark of UTF-16 begins that of UTF-32
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-8": codecs.BOM_UTF8,
}


class EncodedText:
    """A text file, its encoding and its byte order mark.

    Parameters
    ----------
    path : path
        A regular file, since it is read several times; it must not change meanwhile.  One that
        ends in ``.gz`` is read through gzip.
    encoding : str
        Any that writes the text back as it was read.

    Attributes
    ----------
    codec : str
        The encoding without its mark, or with the byte order that the mark names.
    mark : bytes
        The byte order mark, or nothing.

    Raises
    ------
    InputError
        Here and while reading: names the file, the line and what is wrong with it.
    """

    def __init__(self, path: str | os.PathLike[str], encoding: str) -> None:
        try:
            name = codecs.lookup(encoding).name.removesuffix("-sig")
            "".encode(name)  # refuses those that are not of text
            if name in ("idna", "punycode"):  # of domain names
                raise LookupError
        except (LookupError, TypeError, ValueError):
            remedy = "pass a text encoding, such as utf-8, latin-1, cp1252 or utf-16"
            raise InputError("encoding", repr(encoding), remedy, value=encoding) from None
        self.path, self.encoding = Path(path), encoding
        with self._open() as file:
            start, self._stamp = self._read(file, 4), _stamp(file)
        if not start:
            raise self.error("an empty file", "put the columns' names in the first line")
        self.codec = _mark_of(start) or name
        self.mark = MARKS[self.codec] if _mark_of(start) else b""
        if not self.codec.startswith(name):
            problem = f"it begins with the byte order mark of {self.codec}, not as {encoding}"
            raise self.error(problem, f"pass --encoding {self.codec}")
        if not self.mark and name in ("utf-16", "utf-32"):
            raise self.error("no byte order mark", f"pass --encoding {name}-le or {name}-be")

    def error(self, problem: str, remedy: str) -> InputError:
        """Return an error of the file."""
        return InputError(str(self.path), problem, remedy)

    def lines(self, progress: Callable[[int], object] | None = None) -> Iterator[str]:
        """Yield lines with their ends; ``progress`` is given the number of bytes of each read."""
        decoder = codecs.getincrementaldecoder(self.codec)()
        encoder = codecs.getincrementalencoder(self.codec)("replace")
        count, tail, owed = 0, "", b""  # lines, text without a line end, bytes not written back

        def fault(before: str | bytes, problem: str, remedy: str) -> InputError:
            if isinstance(before, bytes):
                before = before.decode(self.codec, "ignore")
            line = count + len(StringIO(f"{tail}{before}.", newline="").readlines())
            return self.error(f"line {line}: {problem}", remedy)

        for chunk in self._chunks(progress):
            owed += chunk
            try:
                text = decoder.decode(chunk, not chunk)
                copy = encoder.encode(text, not chunk)
            except UnicodeError as error:
                before, problem = b"", f"no {self.encoding} ({error})"  # an escape without end
                if isinstance(error, UnicodeDecodeError):
                    before = error.object[: error.start]
                    problem = f"byte 0x{error.object[error.start]:02x} is not {self.encoding}"
                remedy = "pass the text's own, such as --encoding latin-1; export a binary file"
                raise fault(before, problem, f"{remedy} as text") from None
            if not owed.startswith(copy) or (not chunk and owed != copy):
                pairs = enumerate(zip(owed, copy, strict=False))
                same = next((i for i, (a, b) in pairs if a != b), 0)
                problem = f"{self.encoding} does not write these bytes as they are"
                raise fault(owed[:same], problem, "convert the file to UTF-8")
            owed = owed[len(copy) :]
            if "\0" in text:
                remedy = "export a binary file as text; for UTF-16, pass --encoding utf-16-le"
                raise fault(text[: text.index("\0")], "a NUL character", remedy)
            lines = StringIO(tail + text, newline="").readlines()
            tail = lines.pop() if chunk and lines else ""  # may end with half a CRLF
            if len(tail) > LONGEST:
                remedy = "pass a text file that has line ends"
                raise fault("", f"more than {LONGEST} characters", remedy)
            count += len(lines)
            yield from lines

    def _chunks(self, progress: Callable[[int], object] | None) -> Iterator[bytes]:
        """Yield the bytes after the mark; the last chunk is empty."""
        with self._open() as file:
            self._read(file, len(self.mark))
            chunk, place, raw = b".", 0, getattr(file, "fileobj", None) or file
            while chunk:
                chunk = self._read(file, CHUNK)
                if _stamp(file) != self._stamp:
                    raise self.error("changed while it was read", "run again when it is at rest")
                if progress is not None:  # of a compressed file, of the bytes on the disk
                    progress(raw.tell() - place)
                    place = raw.tell()
                yield chunk

    def _read(self, file: IO[bytes], size: int) -> bytes:
        try:
            return file.read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            remedy = "pass a whole gzip file, or drop .gz from its name"
            raise self.error(f"no gzip file that can be read ({error})", remedy) from None

    def _open(self) -> IO[bytes]:
        try:
            if self.path.exists() and not self.path.is_file():
                raise OSError(0, "not a regular file")
            return _opened(self.path)
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            remedy = "pass the path of a text file that can be read"
            raise self.error(problem, remedy) from None


def marked(path: str | os.PathLike[str]) -> str | None:
    """Return the encoding that a file's byte order mark names, or None."""
    try:
        with _opened(Path(path)) as file:
            return _mark_of(file.read(4))
    except (OSError, EOFError, zlib.error):  # who reads it will say so
        return None


def _opened(path: Path) -> IO[bytes]:
    """Open a file for reading, through gzip if its name ends so."""
    file: Any = gzip.GzipFile(path) if path.suffix.lower() == ".gz" else path.open("rb")
    return file


def _mark_of(start: bytes) -> str | None:
    return next((name for name, mark in MARKS.items() if start.startswith(mark)), None)


def _stamp(file: IO[Any]) -> tuple[int, ...]:
    """Return what changes if the file does."""
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
