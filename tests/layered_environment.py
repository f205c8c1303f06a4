"""Make an environment with packages of its own in front and the course's behind them.

python tests/layered_environment.py FOLDER REQUIREMENT...    as pip takes them; nothing is installed that they need themselves
"""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path


def main(folder: Path, requirements: list[str]) -> None:
    """Make or mend the environment in `folder`."""
    venv.create(folder)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", *requirements], check=True)
    asked = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True
    )
    Path(asked.stdout.strip(), "the_course.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
