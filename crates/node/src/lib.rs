//! Simulated nodes: they register, heartbeat, and carry pods through their phases.
