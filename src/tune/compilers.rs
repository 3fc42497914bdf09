//! Threads that compile candidates. They outlive the tuning of a product: what one of them is busy with when the budget is
//! over does not keep the next product waiting.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

type Work = Box<dyn FnOnce() + Send>;

/// Threads, and what they are to do next. When it is dropped, they end what they have begun.
pub struct Compilers {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    work: VecDeque<Work>,
    is_over: bool,
}

impl Compilers {
    /// So many threads, or one.
    pub fn new(threads: usize) -> Compilers {
        let queue = Arc::new(Queue::default());
        let one = |_| {
            let queue = queue.clone();
            std::thread::spawn(move || {
                while let Some(work) = queue.take() {
                    work();
                }
            })
        };
        Compilers { threads: (0..threads.max(1)).map(one).collect(), queue }
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Has something done once a thread is free.
    pub fn run(&self, work: impl FnOnce() + Send + 'static) {
        self.queue.lock().work.push_back(Box::new(work));
        self.queue.changed.notify_one();
    }

    /// Forgets what no thread has begun.
    pub fn forget(&self) {
        self.queue.lock().work.clear();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to do; nothing where all is over.
    fn take(&self) -> Option<Work> {
        let mut waiting = self.lock();
        loop {
            if waiting.is_over {
                return None;
            }
            if let Some(work) = waiting.work.pop_front() {
                return Some(work);
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Compilers {
    fn drop(&mut self) {
        self.queue.lock().is_over = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            // One that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Compilers;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn everything_is_done_unless_it_is_forgotten() {
        let compilers = Compilers::new(3);
        let (sender, done) = mpsc::channel();
        for n in 0..100 {
            let sender = sender.clone();
            compilers.run(move || sender.send(n).unwrap());
        }
        let mut all: Vec<i32> = done.iter().take(100).collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        // Each thread is busy when the rest is forgotten, and then comes to its end.
        let (begun, has_begun) = mpsc::channel();
        for _ in 0..100 {
            let (begun, sender) = (begun.clone(), sender.clone());
            compilers.run(move || {
                begun.send(()).unwrap();
                std::thread::sleep(Duration::from_millis(300));
                sender.send(-1).unwrap();
            });
        }
        has_begun.iter().take(3).for_each(drop);
        compilers.forget();
        drop((compilers, sender, begun));
        assert_eq!(done.iter().count(), 3);
    }
}
