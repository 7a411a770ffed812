//! Vector instruction sets, and which one kernels use.

#[cfg(any(feature = "std", not(all(target_arch = "wasm32", target_feature = "simd128"))))]
use pulp::Scalar128b;
use pulp::{Simd, WithSimd};

/// A vector instruction set.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Level {
    /// No instruction beyond the target's baseline. It is left out of WebAssembly modules with vectors and without `std`, where it could
    /// not be chosen.
    #[cfg(any(feature = "std", not(all(target_arch = "wasm32", target_feature = "simd128"))))]
    Plain,
    /// x86-64 AVX2 and FMA.
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    Avx2(pulp::x86::V3),
    /// x86-64 AVX-512 (F, BW, CD, DQ, VL).
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    Avx512(pulp::x86::V4),
    /// 64-bit Arm NEON.
    #[cfg(all(target_arch = "aarch64", feature = "std"))]
    Neon(pulp::aarch64::Neon),
    /// WebAssembly's 128-bit vectors, in a module compiled with them: a module cannot ask what its host supports.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128(pulp::wasm::Simd128),
}

impl Level {
    /// Every level this machine can run, plain first, fastest last.
    #[allow(clippy::vec_init_then_push, reason = "what is pushed depends on the target")]
    pub fn available() -> alloc::vec::Vec<Level> {
        #[allow(unused_mut, reason = "only some targets add to it")]
        let mut levels = alloc::vec::Vec::new();
        #[cfg(any(feature = "std", not(all(target_arch = "wasm32", target_feature = "simd128"))))]
        levels.push(Level::Plain);
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        {
            levels.extend(pulp::x86::V3::try_new().map(Level::Avx2));
            levels.extend(pulp::x86::V4::try_new().map(Level::Avx512));
        }
        #[cfg(all(target_arch = "aarch64", feature = "std"))]
        levels.extend(pulp::aarch64::Neon::try_new().map(Level::Neon));
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        levels.extend(pulp::wasm::Simd128::try_new().map(Level::Simd128));
        levels
    }

    /// Name as used in the environment variable `MINRNN_SIMD`, and when a level is shown and parsed.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(any(feature = "std", not(all(target_arch = "wasm32", target_feature = "simd128"))))]
            Level::Plain => "plain",
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Level::Avx2(_) => "avx2",
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Level::Avx512(_) => "avx512",
            #[cfg(all(target_arch = "aarch64", feature = "std"))]
            Level::Neon(_) => "neon",
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Level::Simd128(_) => "simd128",
        }
    }

    /// Whether kernels at this level multiply bf16: it is AVX-512, and the CPU also has AVX512-BF16.
    pub fn multiplies_bf16(self) -> bool {
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        return matches!(self, Level::Avx512(_)) && std::is_x86_feature_detected!("avx512bf16");
        #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
        false
    }

    /// Whether kernels at this level multiply 8-bit integers and add four products at once: it is AVX-512, and the CPU also has
    /// AVX512-VNNI.
    pub fn multiplies_int8(self) -> bool {
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        return matches!(self, Level::Avx512(_)) && std::is_x86_feature_detected!("avx512vnni");
        #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
        false
    }

    /// The level kernels use on this thread: the one set by [`Level::scope`], else the one named by `MINRNN_SIMD` if this machine has it,
    /// else the fastest available. An unknown name is ignored; [`Level::from_env`] reports it.
    #[cfg(feature = "std")]
    pub fn current() -> Level {
        chosen::current()
    }

    /// The level kernels use. Without `std` nothing can be detected, so it is plain, or in WebAssembly what the module was compiled with.
    #[cfg(not(feature = "std"))]
    pub fn current() -> Level {
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        return Level::Simd128(pulp::wasm::Simd128::try_new().expect("the module is compiled with these instructions"));
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
        Level::Plain
    }

    /// Runs `work` with kernels called from this thread restricted to this level, except matrix products by the crate `gemm`, which chooses
    /// its own instructions.
    #[cfg(feature = "std")]
    pub fn scope<R>(self, work: impl FnOnce() -> R) -> R {
        chosen::scope(self, work)
    }

    /// Runs a kernel's body with this level's instructions.
    #[inline(always)]
    pub fn run<K: WithSimd>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(any(feature = "std", not(all(target_arch = "wasm32", target_feature = "simd128"))))]
            Level::Plain => Simd::vectorize(Scalar128b, kernel),
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Level::Avx2(simd) => Simd::vectorize(simd, kernel),
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Level::Avx512(simd) => Simd::vectorize(simd, kernel),
            #[cfg(all(target_arch = "aarch64", feature = "std"))]
            Level::Neon(simd) => Simd::vectorize(simd, kernel),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Level::Simd128(simd) => Simd::vectorize(simd, kernel),
        }
    }
}

#[cfg(feature = "std")]
mod chosen {
    use super::Level;
    use std::cell::Cell;
    use std::sync::OnceLock;

    thread_local!(static SCOPED: Cell<Option<Level>> = const { Cell::new(None) });

    pub fn current() -> Level {
        static DETECTED: OnceLock<Level> = OnceLock::new();
        SCOPED.get().unwrap_or_else(|| {
            *DETECTED.get_or_init(|| {
                let wanted = Level::from_env().ok().flatten();
                wanted.or_else(|| Level::available().pop()).unwrap_or(Level::Plain)
            })
        })
    }

    pub fn scope<R>(level: Level, work: impl FnOnce() -> R) -> R {
        struct Restore(Option<Level>);
        impl Drop for Restore {
            fn drop(&mut self) {
                SCOPED.set(self.0);
            }
        }
        let _restore = Restore(SCOPED.replace(Some(level)));
        work()
    }
}
