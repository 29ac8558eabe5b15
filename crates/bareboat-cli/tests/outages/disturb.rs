//! The faults of a run: what happens to which server or to the database, and for how long.

use crate::database::Database;
use crate::fleet::Fleet;
use bareboat_rig::plan::{self, Dice};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    KillServer,
    StopServer,
    RestartServer,
    KillDatabase,
    StopDatabase,
    DropConnections,
    HoldBack,
    Delay,
    RefuseConnections,
    /// Packets between a server and the database are lost in both directions.
    LosePackets,
    /// Packets from the database to a server are lost; requests arrive.
    LoseAnswers,
    JumpClock,
}

const ALL: [Fault; 12] = [
    Fault::DropConnections,
    Fault::KillServer,
    Fault::LoseAnswers,
    Fault::JumpClock,
    Fault::StopDatabase,
    Fault::HoldBack,
    Fault::KillDatabase,
    Fault::LosePackets,
    Fault::StopServer,
    Fault::Delay,
    Fault::RefuseConnections,
    Fault::RestartServer,
];

/// In `make torture` one of so many faults lasts from 5 to 40 seconds.
const LONG: usize = 8;

/// How far a clock jumps, in seconds.
const JUMP: i64 = 300;

/// Injects faults for a time: each kind once in turn, beginning at a random one. Returns how many there were.
pub(crate) fn disturb(fleet: &Fleet, database: &Database, mut dice: Dice, time: Duration) -> usize {
    let start = Instant::now();
    let first = dice.roll(ALL.len() as u64) as usize;
    let mut faults = 0;
    while start.elapsed() < time {
        let fault = ALL[(first + faults) % ALL.len()];
        let at = dice.roll(fleet.replicas.len() as u64) as usize;
        let long = match plan::torture() {
            // Longer than servers wait for each other, and than writes wait for the database.
            Some(_) if faults % LONG == LONG - 1 => Duration::from_secs(5 + dice.roll(36)),
            _ => Duration::from_millis(300 + dice.roll(1500)),
        };
        println!("{:?}: {fault:?} {at} for {long:?}", start.elapsed());
        inject(fleet, database, fault, at, long, dice.roll(1000));
        faults += 1;
        sleep(Duration::from_millis(200 + dice.roll(600)));
    }
    faults
}

fn inject(fleet: &Fleet, database: &Database, fault: Fault, at: usize, long: Duration, dice: u64) {
    let replica = &fleet.replicas[at];
    match fault {
        Fault::KillServer => replica.crash(),
        Fault::RestartServer => replica.restart(),
        Fault::StopServer => {
            replica.signal("STOP");
            sleep(long);
            replica.signal("CONT");
        }
        Fault::KillDatabase => database.crash(dice),
        Fault::StopDatabase => {
            database.signal("STOP", dice);
            sleep(long);
            database.signal("CONT", dice);
        }
        Fault::DropConnections => {
            // Several times: in the middle of different requests.
            for _ in 0..5 {
                replica.proxy.drop_all();
                sleep(long / 5);
            }
        }
        Fault::HoldBack => {
            replica.proxy.set_silent(true);
            sleep(long);
            replica.proxy.set_silent(false);
        }
        Fault::Delay => {
            replica.proxy.set_delay(Duration::from_millis(40));
            sleep(long);
            replica.proxy.set_delay(Duration::ZERO);
        }
        Fault::RefuseConnections => {
            replica.proxy.set_down(true);
            sleep(long);
            replica.proxy.set_down(false);
        }
        Fault::LosePackets => {
            if let Some(link) = &replica.link {
                link.set_down(true);
                sleep(long);
                link.set_down(false);
            }
        }
        Fault::LoseAnswers => {
            if let Some(link) = &replica.link {
                link.set_mute(true);
                sleep(long);
                link.set_mute(false);
            }
        }
        Fault::JumpClock => {
            if let Some(clock) = &replica.clock {
                // Further than a server may be off when it starts.
                clock.jump(if dice.is_multiple_of(2) { JUMP } else { -JUMP });
                sleep(long);
                clock.jump(0);
            }
        }
    }
}
