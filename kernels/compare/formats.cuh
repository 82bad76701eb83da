// The formats as the comparison reads them: words of memory, their numbers, values and distances.
//
// `Word` is what memory holds, without bits that count for nothing; `Number` what values and
// distances are taken from; `Raw` four words as they are read. `near` is the distance of two
// numbers unless `crosses` says of what differs between the words that it is not; `FAR` is where
// 128 distances no longer surely add up in `Steps`.

#pragma once

#include <cstdint>
#include <cuda_fp16.h>

constexpr int PER_THREAD = 4;

template <typename Word> struct alignas(4 * sizeof(Word)) Four {
    Word words[PER_THREAD];
};
template <> struct alignas(16) Four<uint64_t> {
    uint64_t words[PER_THREAD];
};

static __device__ __forceinline__ float minus(float one, float other) {
    return __fsub_rn(one, other);
}
static __device__ __forceinline__ double minus(double one, double other) {
    return __dsub_rn(one, other);
}

// The distance of two words, as signed numbers that are not too far apart.
static __device__ __forceinline__ uint32_t apart(uint32_t one, uint32_t other) {
    return abs(int32_t(other - one));
}
static __device__ __forceinline__ uint32_t apart(uint16_t one, uint16_t other) {
    return abs(int32_t(other) - int32_t(one));
}
static __device__ __forceinline__ uint64_t apart(uint64_t one, uint64_t other) {
    return llabs(int64_t(other - one));
}

// Words that lie side by side.
template <typename WordType, typename StepsType, typename FloatType> struct Plain {
    using Word = WordType;
    using Number = WordType;
    using Steps = StepsType;
    using Float = FloatType;
    using Raw = Four<Word>;
    struct Room {};
    static constexpr bool IS_ALIGNED = true;
    __device__ __forceinline__ Plain(const void*, uint32_t, Room&) {}
    static __device__ __forceinline__ Raw four(const void* array, uint64_t index) {
        return *reinterpret_cast<const Raw*>(static_cast<const Word*>(array) + index);
    }
    static __device__ __forceinline__ void words(const Raw& raw, Word* words) {
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) words[lane] = raw.words[lane];
    }
    static __device__ __forceinline__ Word load(const void* array, uint64_t index) {
        return static_cast<const Word*>(array)[index];
    }
    static __device__ __forceinline__ Number number(Word word) { return word; }
    // As memory holds it.
    static __device__ __forceinline__ Word stored(Word word) { return word; }
    static __device__ __forceinline__ Float error(Float reference, Float candidate, Steps) {
        return minus(candidate, reference);
    }
};

// A sign and a magnitude that grows by one from value to value.
template <typename Word, typename Steps, typename Float>
struct Signed : Plain<Word, Steps, Float> {
    using Plain<Word, Steps, Float>::Plain;
    static __device__ __forceinline__ bool crosses(Word changes) {
        return changes >> (8 * sizeof(Word) - 1);
    }
    static __device__ __forceinline__ Steps near(Word one, Word other) {
        return apart(one, other);
    }
    static __device__ __forceinline__ Steps distance(Word one, Word other) {
        Word magnitude = Word(~Word(0)) >> 1;
        if (!crosses(Word(one ^ other))) return apart(one, other);
        return Steps(one & magnitude) + (other & magnitude);
    }
};

struct F32 : Signed<uint32_t, uint32_t, float> {
    using Signed::Signed;
    static constexpr int BINS = 33;
    static constexpr Steps FAR = 1u << 23;
    static __device__ __forceinline__ float value(Word word) { return __uint_as_float(word); }
};

// The lower 13 bits count for nothing.
struct Tf32 : F32 {
    using F32::F32;
    static __device__ __forceinline__ Word clean(Word word) { return word & ~0x1fffu; }
    static __device__ __forceinline__ void words(const Raw& raw, Word* words) {
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) words[lane] = clean(raw.words[lane]);
    }
    static __device__ __forceinline__ Word load(const void* array, uint64_t index) {
        return clean(F32::load(array, index));
    }
    static __device__ __forceinline__ Steps near(Word one, Word other) {
        return F32::near(one, other) >> 13;
    }
    static __device__ __forceinline__ Steps distance(Word one, Word other) {
        return F32::distance(one, other) >> 13;
    }
};

struct Short : Signed<uint16_t, uint32_t, float> {
    using Signed::Signed;
    static constexpr int BINS = 17;
    static constexpr Steps FAR = 1u << 15;
};

struct F16 : Short {
    using Short::Short;
    static __device__ __forceinline__ float value(Word word) {
        return __half2float(__ushort_as_half(word));
    }
};

// As the fp32 that it is the upper half of.
struct Bf16 : F32 {
    using F32::F32;
    static constexpr int BINS = 17;
    static constexpr Steps FAR = 1u << 15;
    struct alignas(8) Raw {
        uint32_t pairs[PER_THREAD / 2];
    };
    static __device__ __forceinline__ void words(const Raw& raw, Word* words) {
#pragma unroll
        for (int pair = 0; pair < PER_THREAD / 2; pair++) {
            words[2 * pair] = raw.pairs[pair] << 16;
            words[2 * pair + 1] = raw.pairs[pair] & 0xffff0000;
        }
    }
    static __device__ __forceinline__ Word load(const void* array, uint64_t index) {
        return uint32_t(static_cast<const uint16_t*>(array)[index]) << 16;
    }
    static __device__ __forceinline__ Word stored(Word word) { return word >> 16; }
    static __device__ __forceinline__ Steps near(Word one, Word other) {
        return F32::near(one, other) >> 16;
    }
    static __device__ __forceinline__ Steps distance(Word one, Word other) {
        return F32::distance(one, other) >> 16;
    }
};

struct F64 : Signed<uint64_t, uint64_t, double> {
    using Signed::Signed;
    static constexpr int BINS = 65;
    static constexpr Steps FAR = uint64_t(1) << 52;
    static __device__ __forceinline__ double value(Word word) {
        return __longlong_as_double(int64_t(word));
    }
};

// Integers of either sign. `flip` is the highest bit where they have one: with it flipped, words
// are in the order of their values.
template <typename Word, typename Steps, typename Float>
struct Integer : Plain<Word, Steps, Float> {
    using Base = Plain<Word, Steps, Float>;
    static constexpr int BINS = 8 * sizeof(Word) + 1;
    static constexpr Steps FAR = Steps(1) << (sizeof(Word) == 8 ? 52 : 23);
    Word flip;
    __device__ __forceinline__ Integer(const void* table, uint32_t bits, typename Base::Room& room)
        : Base(table, bits, room), flip(Word(bits) << (8 * sizeof(Word) - 1)) {}
    static __device__ __forceinline__ bool crosses(Word) { return false; }
    __device__ __forceinline__ Word number(Word word) const { return word ^ flip; }
    __device__ __forceinline__ Float value(Word number) const {
        if (sizeof(Word) < 8) return Float(int64_t(number) - int64_t(flip));
        return flip != 0 ? Float(int64_t(number ^ flip)) : Float(number);
    }
    static __device__ __forceinline__ Steps near(Word one, Word other) {
        return one > other ? Steps(Word(one - other)) : Steps(Word(other - one));
    }
    static __device__ __forceinline__ Steps distance(Word one, Word other) {
        return near(one, other);
    }
    static __device__ __forceinline__ Float error(Float reference, Float candidate, Steps steps) {
        Float error = minus(candidate, reference);
        // The difference of two integers past 2^53 can vanish; their distance does not.
        return sizeof(Word) == 8 && error == 0 ? Float(steps) : error;
    }
};

using Int16 = Integer<uint16_t, uint32_t, float>;
using Int32 = Integer<uint32_t, uint32_t, double>;
using Int64 = Integer<uint64_t, uint64_t, double>;

// Formats of up to 8 bits: the host gives the value of every pattern and a code that grows by one
// from value to value.
struct Table {
    using Word = uint32_t;
    struct alignas(8) Number {
        float value;
        int32_t code;
    };
    using Steps = uint32_t;
    using Float = float;
    using Raw = uint32_t;
    struct Room {
        Number numbers[256];
    };
    static constexpr int BINS = 9;
    static constexpr Steps FAR = 1u << 23;
    static constexpr bool IS_ALIGNED = true;
    const Number* numbers;
    uint32_t bits;

    __device__ __forceinline__ Table(const void* table, uint32_t bits, Room& room)
        : numbers(room.numbers), bits(bits) {
        for (uint32_t at = threadIdx.x; at < 256; at += blockDim.x)
            room.numbers[at] = static_cast<const Number*>(table)[at];
    }
    static __device__ __forceinline__ Raw four(const void* array, uint64_t index) {
        return *reinterpret_cast<const Raw*>(static_cast<const uint8_t*>(array) + index);
    }
    static __device__ __forceinline__ void words(Raw raw, Word* words) {
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) words[lane] = raw >> (8 * lane) & 0xff;
    }
    static __device__ __forceinline__ Word load(const void* array, uint64_t index) {
        return static_cast<const uint8_t*>(array)[index];
    }
    __device__ __forceinline__ Number number(Word word) const { return numbers[word]; }
    static __device__ __forceinline__ float value(Number number) { return number.value; }
    static __device__ __forceinline__ Word stored(Word word) { return word; }
    static __device__ __forceinline__ bool crosses(Word) { return false; }
    static __device__ __forceinline__ Steps near(Number one, Number other) {
        return abs(other.code - one.code);
    }
    static __device__ __forceinline__ Steps distance(Number one, Number other) {
        return near(one, other);
    }
    static __device__ __forceinline__ float error(float reference, float candidate, Steps) {
        return minus(candidate, reference);
    }
};

// The same in fewer than 8 bits each, one behind the other, lowest bits first.
struct Packed : Table {
    using Table::Table;
    static constexpr bool IS_ALIGNED = false;
    // So many bits from a bit on; no byte is touched that holds none of them.
    static __device__ __forceinline__ uint32_t take(const void* array, uint64_t bit,
                                                    uint32_t count) {
        const uint8_t* bytes = static_cast<const uint8_t*>(array) + bit / 8;
        uint32_t shift = bit % 8, taken = 0;
        for (uint32_t at = 0; 8 * at < shift + count; at++) taken |= bytes[at] << (8 * at);
        return taken >> shift & ((1u << count) - 1);
    }
    __device__ __forceinline__ Raw four(const void* array, uint64_t index) const {
        return take(array, index * bits, 4 * bits);
    }
    __device__ __forceinline__ void words(Raw raw, Word* words) const {
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++)
            words[lane] = raw >> (bits * lane) & ((1u << bits) - 1);
    }
    __device__ __forceinline__ Word load(const void* array, uint64_t index) const {
        return take(array, index * bits, bits);
    }
};
