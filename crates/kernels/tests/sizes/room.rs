//! Memory in which an access past the end is noticed.

/// Room for numbers, all of them 0 at first. On Linux nothing may be read or written past its end.
pub struct Room {
    numbers: &'static mut [f32],
}

impl Room {
    /// Room for `len` numbers, which is kept for the rest of the process.
    ///
    /// # Panics
    /// When the system has none.
    #[cfg(target_os = "linux")]
    pub fn new(len: usize) -> Self {
        // SAFETY: a query whose arguments cannot be wrong.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).expect("the system knows the size of its pages");
        let size = (4 * len).next_multiple_of(page);
        let (anonymous, nothing) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_NONE);
        // SAFETY: new memory at a place that the system chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size + page, nothing, anonymous, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED, "the system has no memory");
        // SAFETY: the first `size` bytes of what was just mapped.
        let opened = unsafe { libc::mprotect(start, size, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(opened, 0, "the system does not open its memory");
        // SAFETY: zeroed, readable and writable, aligned to a page, never unmapped, and used by nothing else.
        Self { numbers: unsafe { std::slice::from_raw_parts_mut(start.cast(), size / 4) } }
    }

    /// Room for `len` numbers, which is kept for the rest of the process.
    #[cfg(not(target_os = "linux"))]
    pub fn new(len: usize) -> Self {
        Self { numbers: vec![0.0; len].leak() }
    }

    /// The last `len` numbers.
    pub fn last(&mut self, len: usize) -> &mut [f32] {
        let first = self.numbers.len() - len;
        &mut self.numbers[first..]
    }
}

#[test]
#[cfg(target_os = "linux")]
fn what_lies_behind_a_room_cannot_be_touched() {
    let mut room = Room::new(3);
    let end = room.last(3).as_mut_ptr_range().end;
    // Writing to a pipe from there fails, where a direct access would stop the program.
    let mut pipe = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let written = |place: *const f32| {
        // SAFETY: the system checks the place itself and returns −1 if it may not be read.
        unsafe { libc::write(pipe[1], place.cast(), 4) }
    };
    assert_eq!((written(end.wrapping_sub(1)), written(end)), (4, -1));
}
