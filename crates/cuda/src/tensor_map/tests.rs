use super::*;

fn error(change: impl FnOnce(&mut TiledMap<'_>)) -> String {
    let tensor = GlobalTensor::new(TensorMapType::Bf16, 0x1000, &[4096, 100], &[8192]);
    let mut tiled = TiledMap::new(tensor, &[64, 128]);
    tiled.tensor.swizzle = TensorMapSwizzle::B128;
    assert_eq!(tiled.check(), Ok(()));
    change(&mut tiled);
    tiled.check().unwrap_err()
}

#[test]
fn each_broken_rule_is_named_with_the_value() {
    let cases = [
        (error(|t| t.tensor.dims = &[]), "1 to 5, not 0"),
        (error(|t| t.tensor.strides = &[]), "takes 1 strides, got 0"),
        (
            error(|t| t.box_dims = &[64]),
            "takes 2 box dimensions, got 1",
        ),
        (
            error(|t| t.element_strides = &[1]),
            "element strides or none, got 1",
        ),
        (error(|t| t.tensor.address = 0x1008), "not 0x1008"),
        (error(|t| t.tensor.address = 0), "not null"),
        (error(|t| t.tensor.dims = &[4096, 0]), "1 to 2^32, not 0"),
        (
            error(|t| t.tensor.strides = &[8200]),
            "multiple of 16 bytes below 2^40, not 8200",
        ),
        (error(|t| t.tensor.strides = &[1 << 40]), "below 2^40"),
        (error(|t| t.box_dims = &[64, 257]), "1 to 256, not 257"),
        (error(|t| t.box_dims = &[0, 1]), "1 to 256, not 0"),
        (error(|t| t.element_strides = &[1, 9]), "1 to 8, not 9"),
        (
            error(|t| t.box_dims = &[60, 1]),
            "multiple of 16 bytes, not 120",
        ),
        (
            error(|t| t.box_dims = &[128, 1]),
            "at most 128 bytes, not 256",
        ),
        (
            error(|t| {
                t.tensor.dtype = TensorMapType::U16;
                t.tensor.oob_fill = OobFill::NanRequestZeroFma;
            }),
            "floating-point type, not U16",
        ),
    ];
    for (message, expected) in cases {
        assert!(
            message.contains(expected),
            "{message:?} should name {expected:?}"
        );
    }
}

fn im2col_error(change: impl FnOnce(&mut Im2colMap<'_>)) -> String {
    let dims = &[64, 14, 14, 8];
    let mut im2col = Im2colMap {
        tensor: GlobalTensor::new(TensorMapType::Bf16, 0x1000, dims, &[128, 1792, 25088]),
        lower: &[-1, -1],
        upper: &[-1, -1],
        channels: 64,
        pixels: 128,
        element_strides: &[2, 2],
    };
    im2col.tensor.swizzle = TensorMapSwizzle::B128;
    assert_eq!(im2col.check(), Ok(()));
    change(&mut im2col);
    im2col.check().unwrap_err()
}

#[test]
fn each_broken_im2col_rule_is_named_with_the_value() {
    let cases = [
        (
            im2col_error(|w| (w.tensor.dims, w.tensor.strides) = (&[64, 14], &[128])),
            "rank 3 to 5, not 2",
        ),
        (
            im2col_error(|w| w.lower = &[0]),
            "of rank 4 takes 2 lower corners, got 1",
        ),
        (im2col_error(|w| w.upper = &[]), "2 upper corners, got 0"),
        (
            im2col_error(|w| w.element_strides = &[1; 3]),
            "2 element strides, got 3",
        ),
        (
            im2col_error(|w| w.lower = &[0, -129]),
            "must be -128 to 127, not -129",
        ),
        (im2col_error(|w| w.upper = &[128, 0]), "not 128"),
        (im2col_error(|w| w.channels = 257), "1 to 256, not 257"),
        (im2col_error(|w| w.pixels = 0), "1 to 1024, not 0"),
        (
            im2col_error(|w| w.element_strides = &[1, 9]),
            "1 to 8, not 9",
        ),
        (
            im2col_error(|w| w.channels = 60),
            "innermost channels must be a multiple of 16 bytes, not 120",
        ),
        (
            im2col_error(|w| w.channels = 128),
            "at most 128 bytes, not 256",
        ),
        (im2col_error(|w| w.tensor.address = 8), "not 0x8"),
    ];
    for (message, expected) in cases {
        assert!(
            message.contains(expected),
            "{message:?} should name {expected:?}"
        );
    }
}
