"""A throw-away Slurm on this host: loopback only, no systemd, nothing outside its folder, two logical nodes, fake GPUs.

Everything is started with the cluster's own SLURM_CONF in its environment and ended by process id.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
NODES, CPUS, GPUS = 2, 4, 2
MAX_ARRAY_SIZE = 5
SYSTEM_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def why_not_here(path: str = SYSTEM_PATH) -> str | None:
    """What is missing on `path`, and what to type; None where all of PROGRAMS are installed."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if not missing:
        return None
    install = "apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
    return f"a real Slurm needs {', '.join(missing)}, not installed here (Debian: {install})"


class ThrowAwaySlurm:
    """Start it, use its `environment`, stop it.

    Args:
        folder: Empty; its path must be short, for Unix sockets.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._host = socket.gethostname().partition(".")[0]
        self._first_port = _free_ports(NODES + 1)
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": SYSTEM_PATH}
        for name in [
            name for name in self.environment if name.startswith(("SLURM_", "SBATCH_")) and name[-4:] != "CONF"
        ]:
            del self.environment[name]
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        for name in ("munge", "state", "log", "dev", *(f"spool/n{n}" for n in range(1, NODES + 1))):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        key, socket_path = self.folder / "munge" / "key", self.folder / "munge" / "socket"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        for n in range(GPUS):  # slurmd wants character devices
            (self.folder / "dev" / f"nvidia{n}").symlink_to("/dev/null")
        (self.folder / "slurm.conf").write_text(self._slurm_conf(socket_path))
        (self.folder / "gres.conf").write_text(
            f"AutoDetect=off\nNodeName=n[1-{NODES}] Name=gpu Type=fake Flags=nvidia_gpu_env "
            f"File={self.folder}/dev/nvidia[0-{GPUS - 1}]\n"
        )
        munge = self.folder / "munge"
        self._daemon(
            "munged", "--foreground", "--force", f"--socket={socket_path}", f"--key-file={key}",
            f"--log-file={munge}/log", f"--pid-file={munge}/pid", f"--seed-file={munge}/seed",
        )  # fmt: skip
        self.wait_until(socket_path.exists, "munged")
        self._daemon("slurmctld", "-D")
        for n in range(1, NODES + 1):
            self._start_node(f"n{n}")
        self.wait_until(lambda: self.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * NODES, "the nodes", 60)

    def lose(self, node: str) -> None:
        """Kill a node's daemon, but not what it started; and tell Slurm, which would notice after `SlurmdTimeout`."""
        daemon = self._nodes.pop(node)
        daemon.kill()
        daemon.wait()
        self.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost")

    def find_again(self, node: str) -> None:
        """The node comes back."""
        self._start_node(node)
        self.wait_until(lambda: self.ask("sinfo", "-h", "-n", node, "-o", "%T").strip() in ("idle", "mixed"), node)

    def stop(self) -> None:
        subprocess.run(["scancel", f"--user={getpass.getuser()}"], env=self.environment, check=False, timeout=30)
        deadline = time.monotonic() + 10
        while self.ask("squeue", "-h", "-t", "RUNNING,COMPLETING").strip() and time.monotonic() < deadline:
            time.sleep(0.2)
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def ask(self, *command: str) -> str:
        """What a command of Slurm's prints; nothing while the controller is not up."""
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=30
        ).stdout

    def wait_until(self, happened: Callable[[], object], what: str, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not happened():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {timeout_s} s\n{self._told()}")
            time.sleep(0.2)

    def state(self, task: str) -> str:
        """Slurm's word for the state of one task."""
        return self.ask("squeue", "-h", "-r", "-t", "all", "-j", task, "-o", "%T").strip()

    def node(self, task: str) -> str:
        """Where a task runs."""
        return self.ask("squeue", "-h", "-r", "-j", task, "-o", "%N").strip()

    def restarts(self, task: str) -> int:
        """How often a task has been queued again."""
        told = self.ask("scontrol", "show", "job", task)
        return int(told.partition("Restarts=")[2].split()[0])

    def _told(self) -> str:
        queue = self.ask("squeue", "-r", "-t", "all", "-o", "%i %T %r %R")
        ends = [f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in (self.folder / "log").iterdir()]
        return "\n".join([queue, *ends])

    def _start_node(self, node: str) -> None:
        self._nodes[node] = self._daemon("slurmd", "-D", "-N", node)

    def _daemon(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        path = shutil.which(program, path=SYSTEM_PATH)
        assert path is not None
        with (self.folder / "log" / f"{len(self._daemons)}.{program}").open("wb") as log:
            daemon = subprocess.Popen(
                [path, *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._daemons.append(daemon)
        return daemon

    def _slurm_conf(self, munge_socket: Path) -> str:
        first = self._first_port
        return f"""\
ClusterName=throwaway
SlurmctldHost={self._host}(127.0.0.1)
SlurmctldPort={first}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser={getpass.getuser()}
SlurmdUser={getpass.getuser()}
AuthType=auth/munge
CredType=cred/munge
# A requeued task waits as long as its old credential lives: 2 minutes by default.
AuthInfo=socket={munge_socket},cred_expire=5
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool/%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=50000,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=60
KillWait=3
MinJobAge=600
MaxArraySize={MAX_ARRAY_SIZE}
JobRequeue=0
DebugFlags=NO_CONF_HASH
GresTypes=gpu
NodeName=n[1-{NODES}] NodeHostname={self._host} NodeAddr=127.0.0.1 Port=[{first + 1}-{first + NODES}] CPUs={CPUS} \
RealMemory=2000 Gres=gpu:fake:{GPUS} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=01:00:00 State=UP
"""


def _free_ports(count: int) -> int:
    """The first of `count` neighbouring ports that are free now."""
    for first in range(26800, 32000, count):
        servers: list[socket.socket] = []
        try:
            servers = [socket.create_server(("127.0.0.1", first + n)) for n in range(count)]
        except OSError:
            continue
        finally:
            for server in servers:
                server.close()
        return first
    raise OSError("no free ports")
