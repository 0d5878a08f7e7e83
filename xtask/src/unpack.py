"""Verifies the sha256 of a wheel and extracts ptxas and its license: WHEEL SHA256 FOLDER."""

import hashlib
import pathlib
import sys
import zipfile

wheel, wanted, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
found = hashlib.sha256(wheel.read_bytes()).hexdigest()
if found != wanted:
    sys.exit(f"the sha256 of {wheel.name} is {found}, not {wanted}")
with zipfile.ZipFile(wheel) as archive:
    ptxas = folder / "ptxas"
    ptxas.write_bytes(archive.read("nvidia/cu13/bin/ptxas"))
    ptxas.chmod(0o755)
    for name in archive.namelist():
        if name.endswith("/License.txt"):
            (folder / "License.txt").write_bytes(archive.read(name))
