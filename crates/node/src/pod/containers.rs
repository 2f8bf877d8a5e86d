//! The containers of a pod and what becomes of them: waiting, running, terminated, started again.

use super::names::{container_id, full_image, image_id};
use super::{PodEvent, later};
use crate::profile::Profile;
use crate::program::{self, End};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    Pod, PodSpec, PodStatus, Probe, VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pintle_apimachinery::time::floor_second;
use std::time::Duration;

/// The pause before a container's second start after a failure; it doubles with every further one.
const BACKOFF_MIN: Duration = Duration::from_secs(10);
/// The longest pause before a container is started again.
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// Exit code of a container that is killed.
const KILLED: i32 = 137;
/// Exit code of a command that ends because it is told to.
const TOLD_TO_END: i32 = 143;

/// Whether an init container goes on beside the others.
pub(super) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// A container and its status.
struct Slot<'a> {
    spec: &'a Container,
    status: ContainerStatus,
    is_init: bool,
}

/// All containers of a pod.
pub(super) struct Containers<'a> {
    pod: &'a Pod,
    spec: &'a PodSpec,
    profile: &'a Profile,
    now: Timestamp,
    /// Init containers first, in order.
    slots: Vec<Slot<'a>>,
    n_inits: usize,
    wake: Option<Timestamp>,
    events: Vec<PodEvent>,
}

impl<'a> Containers<'a> {
    pub(super) fn new(pod: &'a Pod, old: &PodStatus, profile: &'a Profile, now: Timestamp) -> Containers<'a> {
        /// A pod without a specification has no containers.
        static NO_SPEC: std::sync::LazyLock<PodSpec> = std::sync::LazyLock::new(PodSpec::default);
        let spec = pod.spec.as_ref().unwrap_or(&NO_SPEC);
        let inits = spec.init_containers.as_deref().unwrap_or_default();
        let has_inits = !inits.is_empty();
        let slot = |spec: &'a Container, known: &Option<Vec<ContainerStatus>>, is_init: bool| {
            let found = known.iter().flatten().find(|status| status.name == spec.name);
            let reason = if has_inits { "PodInitializing" } else { "ContainerCreating" };
            let mut status = found.cloned().unwrap_or_else(|| fresh(spec, reason));
            status.resources = spec.resources.clone().filter(|r| r.requests.is_some() || r.limits.is_some());
            status.allocated_resources = spec.resources.as_ref().and_then(|resources| resources.requests.clone());
            Slot { spec, status, is_init }
        };
        let mut slots: Vec<Slot<'_>> = inits.iter().map(|c| slot(c, &old.init_container_statuses, true)).collect();
        let n_inits = slots.len();
        slots.extend(spec.containers.iter().map(|c| slot(c, &old.container_statuses, false)));
        Containers { pod, spec, profile, now, slots, n_inits, wake: None, events: Vec::new() }
    }

    /// Asks to be looked at again then.
    pub(super) fn wake_at(&mut self, at: Option<Timestamp>) {
        self.wake = match (self.wake, at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// Whether any container has ever been started.
    pub(super) fn has_begun(&self) -> bool {
        self.slots.iter().any(|slot| running(&slot.status).is_some() || last_end(&slot.status).is_some())
    }

    pub(super) fn any_is_running(&self) -> bool {
        self.slots.iter().any(|slot| running(&slot.status).is_some())
    }

    pub(super) fn all_are_stopped(&self) -> bool {
        !self.any_is_running()
    }

    /// Ends what runs: because the pod is to go (`is_told`), or because its time is up.
    pub(super) fn stop_all(&mut self, is_told: bool) {
        for slot in 0..self.slots.len() {
            self.stop(slot, is_told);
        }
    }

    fn stop(&mut self, idx: usize, is_told: bool) {
        let slot = &mut self.slots[idx];
        if running(&slot.status).is_none() {
            return;
        }
        let has_command = slot.spec.command.is_some() || slot.spec.args.is_some();
        let code = match (is_told, has_command) {
            (false, _) => KILLED,
            // a server's own command ends in good order
            (true, false) => 0,
            (true, true) => TOLD_TO_END,
        };
        terminate(&mut slot.status, code, self.now);
    }

    pub(super) fn announce_killing(&mut self, is_first_time: bool) {
        if !is_first_time {
            return;
        }
        for idx in 0..self.slots.len() {
            if running(&self.slots[idx].status).is_some() {
                self.event(idx, false, "Killing", |name| format!("Stopping container {name}"));
            }
        }
    }

    /// Containers that wait for something which never comes.
    pub(super) fn never_start(&mut self, reason: &str) {
        for slot in self.slots.iter_mut().filter(|slot| running(&slot.status).is_none()) {
            let message = match reason {
                "ImagePullBackOff" => {
                    Some(format!("Back-off pulling image {:?}", slot.spec.image.as_deref().unwrap_or_default()))
                }
                _ => None,
            };
            slot.status.state = Some(waiting(reason, message));
        }
    }

    /// Does what is due.
    pub(super) fn advance(&mut self) {
        for idx in 0..self.n_inits {
            self.advance_one(idx);
            let slot = &self.slots[idx];
            let is_done =
                if is_sidecar(slot.spec) { slot.status.started == Some(true) } else { ended_well(&slot.status) };
            if !is_done && !self.mains_have_begun() {
                return;
            }
        }
        for idx in self.n_inits..self.slots.len() {
            self.advance_one(idx);
        }
        if self.mains_are_over() {
            self.stop_all(true);
        }
    }

    fn mains(&self) -> &[Slot<'a>] {
        &self.slots[self.n_inits..]
    }

    fn mains_have_begun(&self) -> bool {
        self.mains().iter().any(|slot| running(&slot.status).is_some() || last_end(&slot.status).is_some())
    }

    /// Whether all containers but the sidecars have ended and are not started again.
    fn mains_are_over(&self) -> bool {
        self.mains().iter().all(|slot| terminated(&slot.status).is_some() && !self.starts_again(slot))
    }

    /// Whether a container that has ended is started again.
    fn starts_again(&self, slot: &Slot<'_>) -> bool {
        let Some(end) = last_end(&slot.status) else { return true };
        let policy = match &slot.spec.restart_policy {
            Some(policy) => policy.as_str(),
            // an init container has one good end
            None if slot.is_init && end.exit_code == 0 => "Never",
            None => match self.spec.restart_policy.as_deref() {
                Some("Always") if slot.is_init => "OnFailure",
                policy => policy.unwrap_or("Always"),
            },
        };
        match policy {
            "Never" => false,
            "OnFailure" => end.exit_code != 0,
            _ => true,
        }
    }

    fn advance_one(&mut self, idx: usize) {
        let slot = &self.slots[idx];
        if let Some(started) = running(&slot.status) {
            self.watch_running(idx, started);
            return;
        }
        if !self.starts_again(slot) {
            return;
        }
        let Some(end) = last_end(&slot.status).cloned() else { return self.start(idx) };
        let ended = end.finished_at.as_ref().map_or(self.now, |at| at.0);
        let due = later(ended, backoff(slot.status.restart_count));
        if due <= self.now {
            return self.start(idx);
        }
        self.wake_at(Some(due));
        self.back_off(idx, end);
    }

    /// Looks whether a running container has come to its end, or has become ready.
    fn watch_running(&mut self, idx: usize, started: Timestamp) {
        let slot = &self.slots[idx];
        let spec = slot.spec;
        let has_ready = !slot.is_init || is_sidecar(spec);
        let may_serve = match (slot.is_init, is_sidecar(spec)) {
            (true, is_sidecar) => is_sidecar,
            (false, _) => self.spec.restart_policy.as_deref().is_none_or(|policy| policy == "Always"),
        };
        if let End::Exit { after, code } = program::end(self.pod, spec, may_serve, self.profile) {
            let end = later(started, after);
            if end <= self.now {
                terminate(&mut self.slots[idx].status, code, self.now);
                return;
            }
            self.wake_at(Some(end));
        }
        let started_at = later(started, probe_time(spec.startup_probe.as_ref()));
        let ready_at = started_at.max(later(started, probe_time(spec.readiness_probe.as_ref())));
        let may_be_ready = program::annotation(self.pod, program::READY, &spec.name) != Some("false");
        let now = self.now;
        let status = &mut self.slots[idx].status;
        status.started = Some(started_at <= now);
        status.ready = ready_at <= now && may_be_ready && has_ready;
        for at in [started_at, ready_at] {
            if at > now {
                self.wake_at(Some(at));
            }
        }
    }

    fn start(&mut self, idx: usize) {
        let now = self.now;
        let uid = self.pod.metadata.uid.as_deref().unwrap_or_default();
        let slot = &mut self.slots[idx];
        if let Some(end) = last_end(&slot.status).cloned() {
            slot.status.restart_count += 1;
            slot.status.last_state = Some(ContainerState { terminated: Some(end), ..ContainerState::default() });
        }
        let image = slot.spec.image.as_deref().unwrap_or_default();
        slot.status.image = full_image(image);
        slot.status.image_id = image_id(image);
        slot.status.container_id = Some(container_id(uid, &slot.spec.name, slot.status.restart_count));
        let state = ContainerStateRunning { started_at: Some(Time(floor_second(now))) };
        slot.status.state = Some(ContainerState { running: Some(state), ..ContainerState::default() });
        let image = format!("{image:?}");
        self.event(idx, false, "Pulled", |_| {
            format!("Container image {image} already present on machine and can be accessed by the pod")
        });
        self.event(idx, false, "Created", |_| "Container created".to_owned());
        self.event(idx, false, "Started", |_| "Container started".to_owned());
        self.watch_running(idx, floor_second(now));
    }

    /// A container that failed waits before it is started again.
    fn back_off(&mut self, idx: usize, end: ContainerStateTerminated) {
        let (namespace, name) = (self.pod.metadata.namespace.as_deref(), self.pod.metadata.name.as_deref());
        let uid = self.pod.metadata.uid.as_deref().unwrap_or_default();
        let about = format!("{}_{}({uid})", name.unwrap_or_default(), namespace.unwrap_or_default());
        let slot = &mut self.slots[idx];
        let pause = go_minutes(backoff(slot.status.restart_count));
        let message = format!("back-off {pause} restarting failed container={} pod={about}", slot.spec.name);
        let is_new = terminated(&slot.status).is_some();
        slot.status.last_state = Some(ContainerState { terminated: Some(end), ..ContainerState::default() });
        slot.status.state = Some(waiting("CrashLoopBackOff", Some(message)));
        if is_new {
            let text = format!("in pod {about}");
            self.event(idx, true, "BackOff", |name| format!("Back-off restarting failed container {name} {text}"));
        }
    }

    fn event(&mut self, idx: usize, is_warning: bool, reason: &'static str, message: impl FnOnce(&str) -> String) {
        let slot = &self.slots[idx];
        let list = if slot.is_init { "initContainers" } else { "containers" };
        let field_path = format!("spec.{list}{{{}}}", slot.spec.name);
        self.events.push(PodEvent { is_warning, reason, message: message(&slot.spec.name), field_path });
    }

    /// The pod's phase while it is not being deleted.
    pub(super) fn phase(&self) -> &'static str {
        let inits = &self.slots[..self.n_inits];
        let failed =
            |slot: &&Slot<'_>| last_end(&slot.status).is_some_and(|end| end.exit_code != 0) && !self.starts_again(slot);
        if inits.iter().filter(|slot| !is_sidecar(slot.spec)).any(|slot| failed(&slot)) {
            return "Failed";
        }
        if !self.mains_have_begun() {
            return "Pending";
        }
        if !self.mains_are_over() {
            return "Running";
        }
        if self.mains().iter().all(|slot| ended_well(&slot.status)) { "Succeeded" } else { "Failed" }
    }

    /// The phase of a pod that was stopped in order to be deleted.
    pub(super) fn final_phase(&self) -> &'static str {
        if self.mains().iter().all(|slot| ended_well(&slot.status)) { "Succeeded" } else { "Failed" }
    }

    /// Puts the containers' statuses where they belong.
    pub(super) fn write(self, status: &mut PodStatus) -> (Option<Timestamp>, Vec<PodEvent>) {
        let (inits, mains): (Vec<Slot<'_>>, Vec<Slot<'_>>) = self.slots.into_iter().partition(|slot| slot.is_init);
        let statuses = |slots: Vec<Slot<'_>>| slots.into_iter().map(|slot| slot.status).collect::<Vec<_>>();
        status.init_container_statuses = Some(statuses(inits)).filter(|statuses| !statuses.is_empty());
        status.container_statuses = Some(statuses(mains));
        (self.wake, self.events)
    }
}

/// The pause before a container's next start.
fn backoff(restart_count: i32) -> Duration {
    match u32::try_from(restart_count).unwrap_or_default() {
        0 => Duration::ZERO,
        n => BACKOFF_MIN.saturating_mul(1 << (n - 1).min(10)).min(BACKOFF_MAX),
    }
}

/// Whole seconds as Go prints them: `10s`, `1m20s`, `5m0s`.
fn go_minutes(time: Duration) -> String {
    let (minutes, seconds) = (time.as_secs() / 60, time.as_secs() % 60);
    if minutes == 0 { format!("{seconds}s") } else { format!("{minutes}m{seconds}s") }
}

fn probe_time(probe: Option<&Probe>) -> Duration {
    let seconds = probe.and_then(|probe| probe.initial_delay_seconds).unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

fn fresh(container: &Container, reason: &str) -> ContainerStatus {
    let mounts = container.volume_mounts.iter().flatten().map(|mount| VolumeMountStatus {
        name: mount.name.clone(),
        mount_path: mount.mount_path.clone(),
        read_only: mount.read_only,
        recursive_read_only: mount.read_only.filter(|is| *is).map(|_| "Disabled".to_owned()),
    });
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        started: Some(false),
        state: Some(waiting(reason, None)),
        last_state: Some(ContainerState::default()),
        volume_mounts: Some(mounts.collect::<Vec<_>>()).filter(|mounts| !mounts.is_empty()),
        ..ContainerStatus::default()
    }
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn running(status: &ContainerStatus) -> Option<Timestamp> {
    let running = status.state.as_ref()?.running.as_ref()?;
    running.started_at.as_ref().map(|at| at.0)
}

fn terminated(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref()?.terminated.as_ref()
}

/// How the container ended last, now or before it was started or held back again.
fn last_end(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    terminated(status).or_else(|| status.last_state.as_ref()?.terminated.as_ref())
}

fn ended_well(status: &ContainerStatus) -> bool {
    terminated(status).is_some_and(|end| end.exit_code == 0)
}

fn terminate(status: &mut ContainerStatus, code: i32, now: Timestamp) {
    let started_at = running(status).map(Time);
    let end = ContainerStateTerminated {
        container_id: status.container_id.clone(),
        exit_code: code,
        reason: Some(if code == 0 { "Completed" } else { "Error" }.to_owned()),
        started_at,
        finished_at: Some(Time(floor_second(now))),
        ..ContainerStateTerminated::default()
    };
    status.state = Some(ContainerState { terminated: Some(end), ..ContainerState::default() });
    status.started = Some(false);
    status.ready = false;
}
