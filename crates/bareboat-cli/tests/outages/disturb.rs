//! The faults of a run: what happens to which server or to the database, and for how long.

use crate::database::Database;
use crate::fleet::Fleet;
use bareboat_rig::plan::Dice;
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
}

const ALL: [Fault; 9] = [
    Fault::DropConnections,
    Fault::KillServer,
    Fault::StopDatabase,
    Fault::HoldBack,
    Fault::KillDatabase,
    Fault::StopServer,
    Fault::Delay,
    Fault::RefuseConnections,
    Fault::RestartServer,
];

/// Injects faults for a time: each kind once in turn, beginning at a random one. Returns how many there were.
pub(crate) fn disturb(fleet: &Fleet, database: &Database, mut dice: Dice, time: Duration) -> usize {
    let start = Instant::now();
    let first = dice.roll(ALL.len() as u64) as usize;
    let mut faults = 0;
    while start.elapsed() < time {
        let fault = ALL[(first + faults) % ALL.len()];
        let at = dice.roll(fleet.replicas.len() as u64) as usize;
        let long = Duration::from_millis(300 + dice.roll(1500));
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
    }
}
