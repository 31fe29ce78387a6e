# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of a file lies in the page cache, asked of the kernel with mincore(2).

Only root gets an answer that means something: since Linux 5.2 mincore tells a reader who may not write the file, and does not
own it, that every page is resident.
"""

from __future__ import annotations

import ctypes
import os

_WINDOW = 1 << 30  # bytes mapped at a time: 256 KiB of answers, whatever the file's size
_PROT_READ = 1
_MAP_SHARED = 1
_FAILED = ctypes.c_void_p(-1).value
#: Only the lowest bit of each answer is defined.
_LOWEST_BIT = bytes(number & 1 for number in range(256))


def trustworthy() -> bool:
    """Whether the kernel tells this process the truth about files that it does not own."""
    return os.geteuid() == 0


def resident(path: str) -> int:
    """Bytes of a file that are in the page cache, in whole pages, at most its size. Reads nothing of the file.

    :raises OSError: where the file cannot be opened or the kernel does not answer.
    """
    size = os.stat(path).st_size
    if not size:
        return 0
    libc = _libc()
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pages = sum(_pages(libc, handle, start, min(_WINDOW, size - start)) for start in range(0, size, _WINDOW))
    finally:
        os.close(handle)
    return min(size, pages * os.sysconf("SC_PAGE_SIZE"))


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_longlong]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    return libc


def _pages(libc: ctypes.CDLL, handle: int, start: int, length: int) -> int:
    """The number of resident pages of one window."""
    address = libc.mmap(None, length, _PROT_READ, _MAP_SHARED, handle, start)
    if address in (None, _FAILED):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        answers = ctypes.create_string_buffer((length + page - 1) // page)
        if libc.mincore(address, length, answers):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return answers.raw.translate(_LOWEST_BIT).count(1)
    finally:
        libc.munmap(address, length)
