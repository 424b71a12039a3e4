//! Measures how exactly limits and requests of processors hold.
//!
//! `cargo run --release --workspace --example shares [SECONDS]`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use husk_core::cpu::CpuShare;
use husk_engine::{Container, ContainerConfig, Engine, EngineConfig, Image, Log};

type Error = Box<dyn std::error::Error>;

const LOOP: &str = r#"(module (memory (export "memory") 1) (func (export "_start") (loop $l (br $l))))"#;

/// In thousandths of a processor.
const LIMITS: [u64; 6] = [50, 100, 250, 500, 900, 1000];

/// Guests without a limit that compute as well, for each processor.
const OTHERS: usize = 2;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let time = Duration::from_secs(seconds);
    let processors = std::thread::available_parallelism()?.get();
    println!("used of a processor within {seconds} s, in thousandths ({processors} processors)");
    let cgroup = Cgroup::new();
    println!(
        "  limit     alone  among {} others{}",
        OTHERS * processors,
        if cgroup.is_some() { "  native under cfs quota" } else { "" }
    );
    for limit in LIMITS {
        let share = CpuShare { request: limit, limit: Some(limit) };
        let alone = used(&bench(processors)?, &[share], 0, time).await?[0];
        let others = used(&bench(processors)?, &[share], OTHERS * processors, time).await?[0];
        let native = cgroup.as_ref().map(|cgroup| cgroup.used(limit, time)).transpose()?;
        let native = native.map_or_else(String::new, |native| format!("  {native:>8.1}"));
        println!("  {limit:>5}  {alone:>8.1}  {others:>14.1}{native}");
    }
    println!("requests 1:2:4, of which each computes all the time");
    for (threads, each) in [(1, 1), (processors, processors)] {
        let shares: Vec<CpuShare> =
            [100, 200, 400].into_iter().flat_map(|request| vec![CpuShare { request, limit: None }; each]).collect();
        let used = used(&bench(threads)?, &shares, 0, time).await?;
        let sums: Vec<f64> = used.chunks(each).map(|of_one| of_one.iter().sum()).collect();
        println!("  {each} of each on {threads} threads: 1 : {:.3} : {:.3}", sums[1] / sums[0], sums[2] / sums[0]);
    }
    Ok(())
}

fn bench(workers: usize) -> Result<Engine, Error> {
    Ok(Engine::new(EngineConfig { workers, ..EngineConfig::default() })?)
}

/// What each of the guests uses in a second while all of them and so many others compute.
async fn used(engine: &Engine, shares: &[CpuShare], others: usize, time: Duration) -> Result<Vec<f64>, Error> {
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), LOOP)?;
    let image = Image::open(file.path())?;
    let start = async |cpu: CpuShare| -> Result<Container, Error> {
        let mut config = ContainerConfig::new(image.clone());
        config.cpu = cpu;
        let container = engine.start(config, Log::default()).await?;
        Ok(container)
    };
    let mut crowd = Vec::new();
    for _ in 0..others {
        crowd.push(start(CpuShare { request: 100, limit: None }).await?);
    }
    let mut measured = Vec::new();
    for share in shares {
        measured.push(start(*share).await?);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let look = || measured.iter().map(|container| container.cpu().cpu).collect::<Vec<_>>();
    let (begun, before) = (Instant::now(), look());
    tokio::time::sleep(time).await;
    let (after, took) = (look(), begun.elapsed());
    crowd.iter().chain(&measured).for_each(Container::kill);
    for container in crowd.iter().chain(&measured) {
        container.wait().await;
    }
    Ok(before.iter().zip(after).map(|(before, after)| thousandths(after - *before, took)).collect())
}

fn thousandths(used: Duration, of: Duration) -> f64 {
    used.as_secs_f64() / of.as_secs_f64() * 1000.0
}

/// A control group for a native process, where this user may make one.
struct Cgroup {
    folder: PathBuf,
    /// Of the unified hierarchy.
    is_v2: bool,
}

impl Cgroup {
    fn new() -> Option<Self> {
        let name = format!("husk-bench-{}", std::process::id());
        let places = [("/sys/fs/cgroup", true, "cpu.max"), ("/sys/fs/cgroup/cpu", false, "cpu.cfs_quota_us")];
        places.into_iter().find_map(|(place, is_v2, file)| {
            let folder = Path::new(place).join(&name);
            fs::create_dir(&folder).ok()?;
            let cgroup = Self { folder, is_v2 };
            cgroup.folder.join(file).exists().then_some(cgroup)
        })
    }

    /// What an endless loop uses under the limit.
    fn used(&self, limit: u64, time: Duration) -> Result<f64, Error> {
        let quota = limit * 100;
        match self.is_v2 {
            true => fs::write(self.folder.join("cpu.max"), format!("{quota} 100000"))?,
            false => {
                fs::write(self.folder.join("cpu.cfs_period_us"), "100000")?;
                fs::write(self.folder.join("cpu.cfs_quota_us"), quota.to_string())?;
            }
        }
        let mut process = Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn()?;
        let pid = process.id();
        let measured = || -> Result<f64, Error> {
            fs::write(self.folder.join("cgroup.procs"), pid.to_string())?;
            std::thread::sleep(Duration::from_millis(500));
            let (begun, before) = (Instant::now(), of_process(pid)?);
            std::thread::sleep(time);
            Ok(thousandths(of_process(pid)? - before, begun.elapsed()))
        };
        let result = measured();
        process.kill()?;
        process.wait()?;
        result
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // It is empty; who can't be removed is the machine's, and stays.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Time of the processors that a process has used.
fn of_process(pid: u32) -> Result<Duration, Error> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let nanos = text.split(' ').next().ok_or("no time")?.parse()?;
    Ok(Duration::from_nanos(nanos))
}
