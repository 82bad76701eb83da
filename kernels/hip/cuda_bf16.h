// Found in place of CUDA's header of this name when a source is compiled as HIP.
#pragma once

#include "cuda_as_hip.h"
