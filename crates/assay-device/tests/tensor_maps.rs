//! Tensor maps as arguments: 128 bytes by value, made by the device over one of its buffers.

use assay_device::{
    Allocation, Argument, BufferId, Device, DeviceError, Image, Launch, StreamId, TensorElement,
    TensorMap, open,
};

/// Loads a box of 8 by 4 words with a map in its parameters, and stores it.
const KERNEL: &str = "\
.version 8.3
.target sm_90
.address_size 64
.visible .entry tile(.param .align 64 .b8 map[128], .param .u64 out) {
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  .shared .align 128 .b8 tile[128];
  .shared .align 8 .b64 gate;
  mov.b64 %rd1, map;
  cvta.param.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mov.u32 %r3, gate;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra WAIT;
  mbarrier.init.shared::cta.b64 [gate], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [gate], 128;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes \
[%r2], [%rd1, {4, 1}], [%r3];
WAIT:
  bar.warp.sync 0xffffffff;
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [gate], 0;
  @!%p2 bra AGAIN;
  mad.lo.u32 %r4, %r1, 4, %r2;
  ld.shared.u32 %r5, [%r4];
  mad.wide.u32 %rd3, %r1, 4, %rd2;
  st.global.u32 [%rd3], %r5;
  ret;
}";

/// A device that has tensor maps: the emulator, or a GPU of a new enough kind where there is one.
fn devices() -> Vec<Box<dyn Device>> {
    let mut all = vec![open("emulator:sm_90").expect("the emulator opens")];
    all.extend(open("cuda").ok().filter(|gpu| gpu.facts().architecture.as_str() >= "sm_90"));
    all
}

/// A tensor of 16 by 6 words that count up, and a buffer for the box.
fn buffers(device: &mut dyn Device) -> Result<(BufferId, BufferId), DeviceError> {
    let tensor = device.allocate(&Allocation::new(4 * 16 * 6))?;
    let words: Vec<u8> = (0..96_u32).flat_map(u32::to_le_bytes).collect();
    device.write(tensor, 0, &words)?;
    Ok((tensor, device.allocate(&Allocation::new(128))?))
}

#[test]
fn a_kernel_loads_a_box_with_a_map_that_the_device_made() -> Result<(), DeviceError> {
    for mut device in devices() {
        let (tensor, out) = buffers(&mut *device)?;
        let map = TensorMap::dense(TensorElement::U32, 0, &[16, 6], &[8, 4]);
        let module = device.load(&Image::ptx("tile.ptx", KERNEL))?;
        let arguments = vec![device.tensor_map(tensor, &map)?, Argument::Buffer(out)];
        let launch = Launch { block: [32, 1, 1], arguments, ..Launch::new(module, "tile") };
        device.launch(StreamId::DEFAULT, &launch)?;
        device.synchronize()?;
        let mut bytes = [0; 128];
        device.read(out, 0, &mut bytes)?;
        let got: Vec<u32> =
            bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let want: Vec<u32> = (0..32).map(|at| 16 * (1 + at / 8) + 4 + at % 8).collect();
        assert_eq!(got, want, "{}", device.facts().name);
    }
    Ok(())
}

#[test]
fn a_map_that_breaks_the_rules_is_refused_with_the_rule() -> Result<(), DeviceError> {
    for mut device in devices() {
        let (tensor, _) = buffers(&mut *device)?;
        let good = TensorMap::dense(TensorElement::U32, 0, &[16, 6], &[8, 4]);
        let bad = [
            (TensorMap { address: 4, ..good }, "no multiple of 16"),
            (TensorMap { strides: [20, 0, 0, 0], ..good }, "stride 20"),
            (TensorMap { rank: 7, ..good }, "7 dimensions"),
            (TensorMap { box_sizes: [300, 1, 1, 1, 1], ..good }, "300 elements"),
        ];
        for (map, words) in bad {
            let error = device.tensor_map(tensor, &map).unwrap_err();
            assert!(matches!(error, DeviceError::InvalidRequest { .. }), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        let gone = device.allocate(&Allocation::new(64))?;
        device.free(gone)?;
        let error = device.tensor_map(gone, &good).unwrap_err();
        assert!(matches!(error, DeviceError::UnknownHandle { .. }), "{error}");
    }
    Ok(())
}
