"""GPU arrays of other libraries. torch owns the memory here, unless CuPy is installed."""

import unittest

try:
    import torch
except ImportError as missing:
    raise unittest.SkipTest("torch is not installed") from missing

import warpline

try:
    import cupy
except ImportError:
    cupy = None

if not torch.cuda.is_available():
    raise unittest.SkipTest("needs a GPU")


class ByInterface:
    """An array with only the CUDA array interface."""

    def __init__(self, tensor, **fields):
        self.tensor = tensor
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, **fields}


class ByDlpack:
    """An array with only DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Arrays(unittest.TestCase):
    def setUp(self):
        self.x = torch.randn(40, 1024, device="cuda")
        self.y = torch.zeros_like(self.x)
        torch.cuda.synchronize()

    def assert_result(self):
        torch.cuda.synchronize()
        torch.testing.assert_close(self.y, torch.softmax(self.x, -1))

    def test_cuda_array_interface(self):
        out = ByInterface(self.y)
        self.assertIs(warpline.softmax(ByInterface(self.x), out=out), out)
        self.assert_result()

    def test_dlpack(self):
        warpline.softmax(ByDlpack(self.x), out=ByDlpack(self.y))
        self.assert_result()

    def test_dlpack_in_bf16_with_a_workspace(self):
        x = torch.randn(300, 32768, device="cuda").bfloat16()
        y = torch.zeros_like(x)
        torch.cuda.synchronize()
        for _ in range(3):
            warpline.softmax(ByDlpack(x), out=ByDlpack(y))
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(y, warpline.softmax(x)))

    def test_stream_of_the_caller_is_used(self):
        stream = torch.cuda.Stream()
        warpline.softmax(ByInterface(self.x), out=ByInterface(self.y), stream=stream.cuda_stream)
        self.assert_result()

    def test_bad_arrays_are_rejected(self):
        x, y = ByInterface(self.x), ByInterface(self.y)
        with self.assertRaisesRegex(warpline.InputError, "cannot allocate an array of type ByInterface"):
            warpline.softmax(x)
        read_only = ByInterface(self.y, data=(self.y.data_ptr(), True))
        with self.assertRaisesRegex(warpline.InputError, "y is a read-only array"):
            warpline.softmax(x, out=read_only)
        with self.assertRaisesRegex(warpline.InputError, "is ready on stream 77"):
            warpline.add(ByInterface(self.x, stream=1), ByInterface(self.x, stream=77), out=y)
        # A caller that passes a stream has ordered it after the producers.
        warpline.add(ByInterface(self.x, stream=1), ByInterface(self.x, stream=77), out=y, stream=1)
        with self.assertRaisesRegex(warpline.InputError, "type '>f4'|type \">f4\""):
            warpline.softmax(ByInterface(self.x, typestr=">f4"), out=y)
        with self.assertRaisesRegex(warpline.InputError, "is not on a GPU"):
            warpline.softmax(x, out=self.y.cpu().numpy())
        with self.assertRaisesRegex(warpline.InputError, "shares memory"):
            warpline.softmax(x, out=x)

    @unittest.skipUnless(cupy, "CuPy is not installed")
    def test_cupy(self):
        x = cupy.random.standard_normal((40, 1024), dtype=cupy.float32)
        y = warpline.softmax(x)
        self.assertIsInstance(y, cupy.ndarray)
        e = cupy.exp(x - x.max(-1, keepdims=True))
        self.assertLess(float(abs(y - e / e.sum(-1, keepdims=True)).max()), 1e-6)
        stream = cupy.cuda.Stream()
        with stream:
            z = warpline.softmax(x, stream=stream.ptr)
        stream.synchronize()
        self.assertTrue(bool((z == y).all()))


if __name__ == "__main__":
    unittest.main()
