//! Guests take turns on the threads that they share, as [`husk_core::cpu`] says (RES-02, RES-03, RES-12).
//!
//! An instance computes only while it has a turn, and there are as many turns as threads. A turn is one slice of fuel after the other;
//! what it cost, in time of the processor, is what its container is charged for. Whoever waits for something that is no turn, be it a
//! socket or a year, has none meanwhile and costs nothing.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use husk_core::Instant;
use husk_core::cpu::{CpuShare, Member, Pod, QUANTUM, RunQueue, Usage};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::ticker::Ticker;

/// The turns of a node.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    begun: std::time::Instant,
    /// Somebody has to wait until a time that is earlier than those before.
    sooner: Notify,
    /// For guests that are stopped by time.
    ticker: Option<Ticker>,
}

#[derive(Debug)]
struct State {
    queue: RunQueue<Arc<Ticket>>,
    /// Turns that nobody has.
    free: usize,
    /// When to look again though nobody does anything.
    look_at: Option<Instant>,
}

/// What a pod's containers may use together. The pod is gone when the last of them and the last clone of this is.
#[derive(Clone, Debug)]
pub(crate) struct PodShare(Arc<PodSeat>);

#[derive(Debug)]
struct PodSeat {
    turns: Turns,
    pod: Pod,
}

/// A container among those that compute. It is gone when this is.
#[derive(Debug)]
pub(crate) struct Seat {
    pod: PodShare,
    member: Member,
    /// It is a pod of its own: what changes changes for both.
    is_alone: bool,
}

impl Turns {
    /// With so many turns at the same time, and somebody on these threads who looks at the clock.
    pub(crate) fn new(turns: usize, threads: &Handle, ticker: Option<Ticker>) -> Self {
        let state = Mutex::new(State { queue: RunQueue::default(), free: turns, look_at: None });
        let shared = Shared { state, begun: std::time::Instant::now(), sooner: Notify::new(), ticker };
        let turns = Self(Arc::new(shared));
        threads.spawn(turns.clone().look_at_the_clock());
        turns
    }

    /// A pod.
    pub(crate) fn pod(&self, share: CpuShare) -> PodShare {
        let pod = self.state().queue.add_pod(self.now(), share);
        PodShare(Arc::new(PodSeat { turns: self.clone(), pod }))
    }

    /// A container that is a pod of its own.
    pub(crate) fn seat(&self, share: CpuShare) -> Seat {
        let mut seat = self.pod(share).seat(share);
        seat.is_alone = true;
        seat
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.0.begun.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the free turns to those whose they are, before anybody else looks at them. Who asks, being polled, need not be woken.
    ///
    /// To wake a task is to put it into a list, and who is cancelled was dropped with all that he had: neither does anything that needs
    /// `state`.
    fn hand_out(&self, state: &mut State, now: Instant, who_asks: Option<&Arc<Ticket>>) {
        while state.free > 0 {
            let Some(turn) = state.queue.next(now) else { break };
            let asks = who_asks.is_some_and(|ticket| Arc::ptr_eq(ticket, &turn.task));
            if turn.task.has_turn(!asks) {
                state.free -= 1;
            }
        }
        let look_at = state.queue.next_wake().filter(|_| state.free > 0);
        let is_sooner = look_at.is_some_and(|at| state.look_at.is_none_or(|before| at < before));
        state.look_at = look_at;
        if is_sooner {
            self.0.sooner.notify_one();
        }
    }

    /// Looks after those who wait for their next period, while there are threads that have nothing to do.
    async fn look_at_the_clock(self) {
        loop {
            let wait = {
                let now = self.now();
                let mut state = self.state();
                self.hand_out(&mut state, now, None);
                state.look_at.map(|at| at.saturating_since(now))
            };
            match wait {
                Some(wait) => _ = tokio::time::timeout(wait, self.0.sooner.notified()).await,
                None => self.0.sooner.notified().await,
            }
        }
    }
}

impl PodShare {
    /// A container of the pod.
    pub(crate) fn seat(&self, share: CpuShare) -> Seat {
        let turns = &self.0.turns;
        let member = turns.state().queue.add(turns.now(), self.0.pod, share);
        let member = member.expect("the pod is there for as long as this is");
        Seat { pod: self.clone(), member, is_alone: false }
    }

    /// The pod may use something else from now on (RES-11).
    pub(crate) fn change(&self, share: CpuShare) {
        let (turns, now) = (&self.0.turns, self.0.turns.now());
        let mut state = turns.state();
        state.queue.change_pod(now, self.0.pod, share);
        turns.hand_out(&mut state, now, None);
    }

    /// What all its containers have used, those that are gone included.
    pub(crate) fn usage(&self) -> Usage {
        self.0.turns.state().queue.usage_of_pod(self.0.pod).unwrap_or_default()
    }
}

impl Drop for PodSeat {
    fn drop(&mut self) {
        self.turns.state().queue.remove_pod(self.pod);
    }
}

impl Seat {
    /// The container may use something else from now on (RES-11).
    pub(crate) fn change(&self, share: CpuShare) {
        if self.is_alone {
            self.pod.change(share);
        }
        let (turns, now) = (self.turns(), self.turns().now());
        let mut state = turns.state();
        state.queue.change(now, self.member, share);
        turns.hand_out(&mut state, now, None);
    }

    /// What its instances have used.
    pub(crate) fn usage(&self) -> Usage {
        self.turns().state().queue.usage(self.member).unwrap_or_default()
    }

    /// Runs an instance in its container's turns.
    pub(crate) async fn run<F: Future>(&self, guest: F) -> F::Output {
        let guest = std::pin::pin!(guest);
        let ticket = Arc::new(Ticket::default());
        InTurns { seat: self, guest, waker: Waker::from(ticket.clone()), ticket, place: Place::Out }.await
    }

    fn turns(&self) -> &Turns {
        &self.pod.0.turns
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.turns().state().queue.remove(self.member);
    }
}

/// How one instance is told that it has a turn, and how it is noticed that it wants to go on.
#[derive(Debug, Default)]
struct Ticket {
    poll: AtomicU8,
    turn: Mutex<TurnOf>,
}

/// No poll is under way: who wakes the instance wakes its task.
const AWAY: u8 = 0;
/// A poll is under way.
const POLLED: u8 = 1;
/// It was woken during the poll: it has more to do, be it that its slice was used up.
const HAS_MORE: u8 = 2;

#[derive(Debug, Default)]
struct TurnOf {
    waker: Option<Waker>,
    state: TurnState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TurnState {
    #[default]
    Wanted,
    Given,
    /// Nobody wants it any more.
    Cancelled,
}

impl Ticket {
    fn turn(&self) -> MutexGuard<'_, TurnOf> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is the instance's turn. False if it doesn't want any.
    fn has_turn(&self, wakes: bool) -> bool {
        let mut turn = self.turn();
        if turn.state == TurnState::Cancelled {
            return false;
        }
        turn.state = TurnState::Given;
        if wakes && let Some(waker) = &turn.waker {
            waker.wake_by_ref();
        }
        true
    }
}

impl Wake for Ticket {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let more = |state| (state != AWAY).then_some(HAS_MORE);
        if self.poll.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_err() {
            let waker = self.turn().waker.clone();
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

/// Where an instance is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It waits for something.
    Out,
    /// It waits for a turn.
    Waits,
    /// It has one, of which so much is used.
    HasTurn(Duration),
}

struct InTurns<'s, F> {
    seat: &'s Seat,
    guest: Pin<&'s mut F>,
    ticket: Arc<Ticket>,
    /// The ticket's.
    waker: Waker,
    place: Place,
}

impl<F: Future> Future for InTurns<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        {
            let mut turn = self.ticket.turn();
            if !turn.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                turn.waker = Some(context.waker().clone());
            }
        }
        if self.place == Place::Out {
            self.want_turn();
        }
        if self.place == Place::Waits {
            if self.ticket.turn().state != TurnState::Given {
                return Poll::Pending;
            }
            self.place = Place::HasTurn(Duration::ZERO);
        }
        self.turn(context)
    }
}

impl<F: Future> InTurns<'_, F> {
    /// Lets the instance compute until it has nothing to do, has to give up its turn, or has kept others of this thread from theirs, as
    /// timers and sockets are, for as long as a turn may last.
    fn turn(&mut self, context: &Context<'_>) -> Poll<F::Output> {
        let begun = std::time::Instant::now();
        let seat = self.seat;
        let ticker = seat.turns().0.ticker.as_ref();
        POLL.set(Some(begun));
        ticker.inspect(|ticker| ticker.enter());
        // What it takes to see who is next is charged as well.
        let mut used = used_by_this_thread();
        let mut result = self.slice(&mut used);
        while result.is_none() && begun.elapsed() < QUANTUM {
            result = self.slice(&mut used);
        }
        ticker.inspect(|ticker| ticker.leave());
        POLL.set(None);
        result.unwrap_or_else(|| {
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// One slice. None if the instance still has its turn, and more to do. `before` is what this thread had used, and has then.
    fn slice(&mut self, before: &mut Duration) -> Option<Poll<F::Output>> {
        self.ticket.poll.store(POLLED, Ordering::Release);
        let result = self.guest.as_mut().poll(&mut Context::from_waker(&self.waker));
        let has_more = self.ticket.poll.swap(AWAY, Ordering::AcqRel) == HAS_MORE;
        let now_used = used_by_this_thread();
        let used = now_used.saturating_sub(std::mem::replace(before, now_used));

        let turns = self.seat.turns();
        let now = turns.now();
        let mut state = turns.state();
        state.queue.spend(now, self.seat.member, used);
        let Place::HasTurn(so_far) = self.place else { return Some(result) };
        let so_far = so_far + used;
        if result.is_pending() && has_more && state.queue.may_go_on(now, self.seat.member, so_far) {
            self.place = Place::HasTurn(so_far);
            turns.hand_out(&mut state, now, None);
            return None;
        }
        state.free += 1;
        self.place = Place::Out;
        if result.is_pending() && has_more {
            self.line_up(&mut state, now);
        }
        turns.hand_out(&mut state, now, None);
        Some(result)
    }

    fn want_turn(&mut self) {
        let turns = self.seat.turns();
        let now = turns.now();
        let mut state = turns.state();
        self.line_up(&mut state, now);
        turns.hand_out(&mut state, now, Some(&self.ticket));
    }

    fn line_up(&mut self, state: &mut State, now: Instant) {
        self.ticket.turn().state = TurnState::Wanted;
        self.place = Place::Waits;
        // A container that is gone has no turns: nothing of it is polled any more.
        state.queue.wait(now, self.seat.member, self.ticket.clone());
    }
}

impl<F> Drop for InTurns<'_, F> {
    fn drop(&mut self) {
        let had_turn = match self.place {
            Place::Out => false,
            Place::HasTurn(_) => true,
            Place::Waits => {
                let mut turn = self.ticket.turn();
                std::mem::replace(&mut turn.state, TurnState::Cancelled) == TurnState::Given
            }
        };
        if had_turn {
            let turns = self.seat.turns();
            let now = turns.now();
            let mut state = turns.state();
            state.free += 1;
            turns.hand_out(&mut state, now, None);
        }
    }
}

thread_local! {
    /// When the poll began that this thread is in.
    static POLL: Cell<Option<std::time::Instant>> = const { Cell::new(None) };
}

/// Ends the slice of the instance that calls this if it has lasted for as long as a turn may: slices are measured in fuel, and what the host
/// does for a guest costs none.
pub(crate) async fn pause_if_long() {
    let mut pauses = POLL.get().is_some_and(|begun| begun.elapsed() >= QUANTUM);
    poll_fn(|context| {
        if !std::mem::take(&mut pauses) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Time of the processor that the calling thread has used.
fn used_by_this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
