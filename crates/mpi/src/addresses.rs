//! This machine's addresses, by which other machines may reach it.

use std::net::IpAddr;

/// Addresses of all active interfaces, the loopback's last.
#[cfg(unix)]
pub fn own() -> Vec<IpAddr> {
    let mut first = std::ptr::null_mut();
    // SAFETY: `first` is a place for the pointer to a list that the call makes.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return vec![IpAddr::from([127, 0, 0, 1])];
    }
    let (mut found, mut at) = (Vec::new(), first);
    while !at.is_null() {
        // SAFETY: `at` is an entry of the list, which is freed below.
        let interface = unsafe { &*at };
        at = interface.ifa_next;
        let is_up = interface.ifa_flags & libc::IFF_UP as u32 != 0;
        if interface.ifa_addr.is_null() || !is_up {
            continue;
        }
        // SAFETY: the address is not null, and its first field gives the family, which determines its type.
        unsafe {
            match i32::from((*interface.ifa_addr).sa_family) {
                libc::AF_INET => {
                    let address = &*interface.ifa_addr.cast::<libc::sockaddr_in>();
                    found.push(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()));
                }
                libc::AF_INET6 => {
                    let address = &*interface.ifa_addr.cast::<libc::sockaddr_in6>();
                    found.push(IpAddr::from(address.sin6_addr.s6_addr));
                }
                _ => {}
            }
        }
    }
    // SAFETY: the list was made by `getifaddrs`, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(first) };
    // Link-local addresses are of no use without the name of the link.
    found.retain(|address| !matches!(address, IpAddr::V6(address) if address.is_unicast_link_local()));
    found.sort_by_key(|address| (address.is_loopback(), address.is_ipv6()));
    found
}

/// An address that is only reachable from this machine.
#[cfg(not(unix))]
pub fn own() -> Vec<IpAddr> {
    vec![IpAddr::from([127, 0, 0, 1])]
}
