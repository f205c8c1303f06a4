"""Make the environment in which nbgrader is tested: its own packages in front, the course's behind them.

python tests/nbgrader/environment.py FOLDER
"""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def main(folder: Path) -> None:
    """Make or mend the environment in `folder`."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--no-deps", "-r", str(REQUIREMENTS)], check=True)
    asked = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True
    )
    Path(asked.stdout.strip(), "the_course.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
