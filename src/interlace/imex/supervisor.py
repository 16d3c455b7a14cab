"""Decides what to do about the one nvidia-imex of a node. Pure: events and time in, model and actions out.

Invariants:
- Start is asked for only while no process lives: the driver has one IMEX session.
- A process serves one domain with one own index, one set of names and one config, fixed at its
  start; anything else means stop, wait for the exit, start. Another address is a hosts write and one
  reload.
- Reloads are at least `RELOAD_WINDOW` apart (IMEX drops signals inside its window of 5 s), and
  after the last change of an address there is always one more reload or a start.
- The order that came last wins; the same order again changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from interlace.imex.config import check_extra
from interlace.imex.order import Order, Peers, Phase, State, check
from interlace.imex.reasons import ImexError, Reason, explain

RELOAD_WINDOW = 5.25
"""Seconds between two reloads: the 5 s of IMEX and a margin for signals that arrive late."""
TERM_PATIENCE = 10.0
"""Seconds from SIGTERM to SIGKILL: on SIGTERM IMEX tells its peers first."""
KILL_PATIENCE = 5.0
"""Seconds after SIGKILL until the process counts as stuck, and between further ones."""
READY_PATIENCE = 10.0
"""Seconds after the start until the state says that READY is overdue."""
HOSTS_PAUSE = 1.0
"""Seconds until a hosts file that could not be written is tried again."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
HEALTHY = 60.0
"""Seconds of being READY after which earlier crashes are forgotten."""
LOOP = 3
"""Crashes in a row that make a crash loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The living process, and the order whose files it was started with or last told to read."""

    order: Order
    pid: int
    since: float
    ready_since: float | None = None
    stop_asked: bool = False
    killed: bool = False
    stuck: bool = False
    stop_deadline: float = 0.0
    overdue: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Everything that decisions depend on."""

    wanted: Order | None = None
    process: Process | None = None
    fault: Fault | None = None
    """Why the wanted order does not run, or why its last process ended."""
    refused: Fault | None = None
    """Why a newer order was not taken, or not in full, while the process of its domain runs on."""
    retry_at: float | None = None
    failures: int = 0
    restarts: int = 0
    hosts_due: float | None = None
    """When to write the hosts file for a change of addresses."""
    reload_pending: bool = False
    reloaded_at: float | None = None
    reloads: int = 0
    peers: Peers = "Unknown"
    disconnected: tuple[int, ...] = ()
    health: Fault | None = None


# Events


@dataclass(frozen=True, slots=True)
class Ordered:
    order: Order


@dataclass(frozen=True, slots=True)
class Released:
    domain: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """After a start of the host: the stored order, and the process that still lives with the order it has."""

    wanted: Order | None
    running: Order | None
    pid: int
    reload_pending: bool
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class Started:
    pid: int


@dataclass(frozen=True, slots=True)
class NotStarted:
    fault: Fault


@dataclass(frozen=True, slots=True)
class BecameReady:
    pid: int


@dataclass(frozen=True, slots=True)
class Exited:
    pid: int
    fault: Fault


@dataclass(frozen=True, slots=True)
class HostsFailed:
    """The hosts file could not be written for a change of addresses."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class Health:
    """What the peers' connections look like; ``fault`` says why they are unknown."""

    peers: Peers
    disconnected: tuple[int, ...] = ()
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = Ordered | Released | Resumed | Started | NotStarted | BecameReady | Exited | HostsFailed | Health | Tick

# Actions


@dataclass(frozen=True, slots=True)
class Start:
    """Write all files and start; answer with `Started` or `NotStarted`."""

    order: Order


@dataclass(frozen=True, slots=True)
class WriteHosts:
    """Write the hosts file; answer with `HostsFailed` if that fails."""

    order: Order


@dataclass(frozen=True, slots=True)
class Reload:
    """Send SIGUSR1."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """Send SIGTERM."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Send SIGKILL."""


Action = Start | WriteHosts | Reload | Terminate | Kill


def step(model: Model, event: Event, *, now: float) -> tuple[Model, list[Action]]:
    """The model after an event at ``now`` (seconds of a monotonic clock) and what to do, in this order."""
    match event:
        case Ordered(order=order):
            model = _take_order(model, order)
        case Released(domain=domain):
            if model.wanted is not None and model.wanted.domain == domain:
                model = _forget(model)
        case Resumed():
            process = None
            if event.running is not None:
                process = Process(order=event.running, pid=event.pid, since=now)
            # When the last reload was is not known: wait a whole window.
            model = Model(
                wanted=event.wanted,
                process=process,
                reload_pending=event.reload_pending,
                reloaded_at=now,
                restarts=event.restarts,
                fault=_invalid(event.wanted) if event.wanted is not None else None,
            )
        case Started(pid=pid) if model.wanted is not None:
            model = replace(model, process=Process(order=model.wanted, pid=pid, since=now), retry_at=None)
            model = replace(_without_health(model), reload_pending=False, reloaded_at=None)
        case NotStarted(fault=fault):
            model = _failed(model, fault, now)
        case BecameReady(pid=pid) if model.process is not None and model.process.pid == pid:
            ready = replace(model.process, ready_since=now, overdue=False)
            model = replace(model, process=ready, fault=None)
        case Exited(pid=pid, fault=fault) if model.process is not None and model.process.pid == pid:
            model = _exited(model, model.process, fault, now)
        case HostsFailed(fault=fault) if model.process is not None:
            model = replace(model, refused=fault, reload_pending=True, hosts_due=now + HOSTS_PAUSE)
        case Health() if model.process is not None and model.process.ready_since is not None:
            model = replace(model, peers=event.peers, disconnected=event.disconnected, health=event.fault)
        case _:
            pass
    return _advance(model, now)


def _take_order(model: Model, order: Order) -> Model:
    if order == model.wanted:
        return replace(model, refused=None)
    fault = _invalid(order)
    process = model.process
    runs_its_domain = process is not None and not process.stop_asked and process.order.domain == order.domain
    if fault is not None and runs_its_domain:
        return replace(model, refused=fault)
    other = model.wanted is None or identity(order) != identity(model.wanted)
    model = replace(model, wanted=order, refused=None)
    if other or fault is not None or _permanent(model):
        model = replace(model, fault=fault, retry_at=None, failures=0, restarts=0)
    return model


def _forget(model: Model) -> Model:
    return replace(model, wanted=None, fault=None, refused=None, retry_at=None, failures=0, restarts=0)


def _invalid(order: Order) -> Fault | None:
    try:
        check(order)
        check_extra(order.config)
    except ImexError as error:
        return Fault(reason=error.reason, message=error.message)
    return None


def _permanent(model: Model) -> bool:
    """Whether the wanted order can never run as it is."""
    return model.fault is not None and model.fault.reason in (Reason.ORDER_INVALID, Reason.CONFIG_REFUSED)


def _exited(model: Model, process: Process, fault: Fault, now: float) -> Model:
    model = replace(_without_health(model), process=None, reload_pending=False, hosts_due=None)
    if process.stop_asked or model.wanted is None or identity(process.order) != identity(model.wanted):
        return model
    if process.ready_since is not None and now - process.ready_since >= HEALTHY:
        model = replace(model, failures=0)
    return _failed(replace(model, restarts=model.restarts + 1), fault, now)


def _failed(model: Model, fault: Fault, now: float) -> Model:
    if model.wanted is None:
        return model
    failures = model.failures + 1
    pause = min(FIRST_PAUSE * 2.0 ** min(failures - 1, 16), LONGEST_PAUSE)
    if fault.reason is Reason.CRASHED and failures >= LOOP:
        fault = Fault(reason=Reason.CRASH_LOOP, message=f"{failures} times in a row: {fault.message}")
    retry_at = None if fault.reason in (Reason.ORDER_INVALID, Reason.CONFIG_REFUSED) else now + pause
    return replace(model, process=None, fault=fault, failures=failures, retry_at=retry_at)


def _without_health(model: Model) -> Model:
    return replace(model, peers="Unknown", disconnected=(), health=None)


def identity(order: Order) -> tuple[object, ...]:
    """What is fixed while a process runs; addresses are not."""
    return (order.domain, order.index, tuple(order.names), tuple(sorted(order.config.items())))


def _advance(model: Model, now: float) -> tuple[Model, list[Action]]:
    """What follows from the model alone: stop what must not run, write, reload, start what is due."""
    wanted, process = model.wanted, model.process
    if process is None:
        if wanted is None or _permanent(model) or (model.retry_at is not None and now < model.retry_at):
            return model, []
        return replace(model, retry_at=None), [Start(wanted)]
    if process.stop_asked:
        if now < process.stop_deadline:
            return model, []
        process = replace(process, killed=True, stuck=process.killed, stop_deadline=now + KILL_PATIENCE)
        return replace(model, process=process), [Kill()]
    if wanted is None or identity(wanted) != identity(process.order) or _permanent(model):
        process = replace(process, stop_asked=True, stop_deadline=now + TERM_PATIENCE)
        return replace(_without_health(model), process=process, reload_pending=False, hosts_due=None), [Terminate()]
    actions: list[Action] = []
    if wanted.addresses != process.order.addresses:
        process = replace(process, order=wanted)
        model = replace(_without_health(model), process=process, reload_pending=True, hosts_due=now)
    if model.hosts_due is not None and now >= model.hosts_due:
        actions.append(WriteHosts(wanted))
        refused = model.refused
        written = refused is not None and refused.reason is Reason.FILES_NOT_WRITTEN
        model = replace(model, hosts_due=None, refused=None if written else refused)
    if process.ready_since is None:
        if not process.overdue and now >= process.since + READY_PATIENCE:
            model = replace(model, process=replace(process, overdue=True))
    elif model.reload_pending and model.hosts_due is None and now >= _reload_at(model):
        model = replace(model, reload_pending=False, reloaded_at=now, reloads=model.reloads + 1)
        actions.append(Reload())
    return model, actions


def _reload_at(model: Model) -> float:
    return float("-inf") if model.reloaded_at is None else model.reloaded_at + RELOAD_WINDOW


def wake_at(model: Model) -> float | None:
    """When the next `Tick` is due; None if only another event can change anything."""
    process = model.process
    if process is None:
        return model.retry_at if model.wanted is not None else None
    if process.stop_asked:
        return process.stop_deadline
    if process.ready_since is None:
        overdue_at = None if process.overdue else process.since + READY_PATIENCE
        return min((time for time in (overdue_at, model.hosts_due) if time is not None), default=None)
    if model.hosts_due is not None:
        return model.hosts_due
    return _reload_at(model) if model.reload_pending else None


def describe(model: Model) -> State:
    """The state that agents see."""
    process, wanted = model.process, model.wanted
    order = wanted or (process.order if process is not None else None)
    if order is None:
        return State()
    phase, fault = _phase(model, order)
    reason, message = (fault.reason, explain(fault.reason, fault.message)) if fault is not None else (Reason.NONE, "")
    return State(
        domain=order.domain,
        index=order.index,
        phase=phase,
        reason=reason.value,
        message=message,
        pid=process.pid if process is not None else 0,
        restarts=model.restarts,
        peers=model.peers,
        disconnected=list(model.disconnected),
    )


def _phase(model: Model, order: Order) -> tuple[Phase, Fault | None]:
    process = model.process
    if process is None:
        return ("Failed", model.fault) if model.fault is not None else ("Starting", None)
    if process.stop_asked:
        if process.stuck:
            text = f"nvidia-imex (pid {process.pid}) of domain {process.order.domain} still lives after SIGKILL"
            return "Failed", Fault(reason=Reason.PROCESS_STUCK, message=text)
        if model.wanted is None:
            return "Stopping", None
        return ("Failed", model.fault) if model.fault is not None else ("Starting", None)
    if process.ready_since is None:
        if model.failures >= LOOP and model.fault is not None:
            return "Failed", model.fault
        if process.overdue:
            text = f"nvidia-imex of domain {order.domain} is not READY {READY_PATIENCE:.0f} s after its start"
            return "Starting", Fault(reason=Reason.NOT_READY_YET, message=text)
        return "Starting", model.fault
    return "Ready", model.refused or model.health
