//! Figures of the agent's own process, under the names that all clients of Prometheus use. They are read when they are asked for.

use std::fmt;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The process that this runs in.
#[derive(Debug)]
pub(super) struct ThisProcess {
    started: f64,
}

impl ThisProcess {
    pub(super) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let uptime = fs::read_to_string("/proc/uptime").ok().and_then(|text| text.split(' ').next()?.parse().ok());
        let age = uptime.and_then(|uptime: f64| Some(uptime - in_seconds(Stat::read()?.started)));
        Self { started: now - age.unwrap_or_default() }
    }
}

impl Collector for ThisProcess {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(stat) = Stat::read() else { return Ok(()) };
        let page = rustix::param::page_size() as u64;
        let bytes = [
            ("process_resident_memory_bytes", "Resident memory size in bytes", stat.resident_pages * page),
            ("process_virtual_memory_bytes", "Virtual memory size in bytes", stat.virtual_bytes),
            ("process_open_fds", "Number of open file descriptors", open_files()),
            ("process_max_fds", "Maximum number of open file descriptors", most_files()),
            ("process_threads", "Number of threads", stat.threads),
        ];
        for (name, help, value) in bytes {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let started = ConstGauge::new(self.started);
        let help = "Start time of the process since the Unix epoch in seconds";
        started.encode(encoder.encode_descriptor(
            "process_start_time_seconds",
            help,
            None,
            started.metric_type(),
        )?)?;
        let cpu = ConstCounter::new(in_seconds(stat.cpu));
        let help = "Total user and system CPU time spent in seconds";
        cpu.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, cpu.metric_type())?)
    }
}

/// What the kernel says of it in one line.
struct Stat {
    /// In ticks.
    cpu: u64,
    threads: u64,
    /// In ticks since the machine was.
    started: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn read() -> Option<Self> {
        let line = fs::read_to_string("/proc/self/stat").ok()?;
        // The name, which may hold anything, ends with the last bracket.
        let fields: Vec<_> = line.rsplit_once(") ")?.1.split(' ').collect();
        // proc(5) counts from 1, and these begin with its third.
        let field = |number: usize| fields.get(number - 3)?.trim().parse::<u64>().ok();
        Some(Self {
            cpu: field(14)? + field(15)?,
            threads: field(20)?,
            started: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

fn in_seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

fn open_files() -> u64 {
    // Reading the folder opens one more.
    fs::read_dir("/proc/self/fd").map_or(0, |files| files.count().saturating_sub(1) as u64)
}

fn most_files() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}
