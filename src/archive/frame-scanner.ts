/** Finds where frames of Zstandard end, without decompressing them. */
export interface FrameScanner {
  /**
   * Reads on in the current frame.
   * @returns where the frame ends in these bytes; undefined if it does not. Bytes after its end are those of the next frame.
   */
  scan(bytes: Buffer): number | undefined
}

const magicBytes = 4
const blockHeaderBytes = 3
const checksumBytes = 4

/**
 * Scans frames one after the other by the sizes in them, RFC 8878, 3.1. Bytes that are no frame, or are damaged, make it return
 * wrong places, never an error: the decompressor decides.
 */
export function createFrameScanner(): FrameScanner {
  const field = Buffer.alloc(8)
  let filled: number
  /** Bytes of the field that is being read; what follows it is skipped. */
  let wanted: number
  let skipped: number
  /** What the field is; returns false at the end of the frame. */
  let onField: () => boolean

  function read(bytes: number, then: () => boolean): true {
    ;[filled, wanted, onField] = [0, bytes, then]
    return true
  }
  function begin(): void {
    skipped = 0
    read(magicBytes, readMagic)
  }

  function readMagic(): boolean {
    // The size of a skippable frame, or the descriptor of any other one, 3.1.1.1.1.
    return (field.readUInt8() & 0xf0) === 0x50 ? read(4, readSkippable) : read(1, readDescriptor)
  }
  function readSkippable(): boolean {
    skipped = field.readUInt32LE()
    return false
  }
  function readDescriptor(): boolean {
    const descriptor = field.readUInt8()
    const isSingleSegment = (descriptor & 0x20) !== 0
    const sizeFlag = descriptor >> 6
    const sizeBytes = sizeFlag === 0 ? Number(isSingleSegment) : 2 ** sizeFlag
    const dictionaryFlag = descriptor & 3
    const dictionaryBytes = dictionaryFlag === 3 ? 4 : dictionaryFlag
    skipped = (isSingleSegment ? 0 : 1) + dictionaryBytes + sizeBytes
    const hasChecksum = (descriptor & 4) !== 0
    return read(blockHeaderBytes, () => readBlock(hasChecksum))
  }
  function readBlock(hasChecksum: boolean): boolean {
    const header = field.readUIntLE(0, blockHeaderBytes)
    // A block of one repeated byte has that byte only.
    skipped = ((header >> 1) & 3) === 1 ? 1 : header >> 3
    if ((header & 1) === 0) return read(blockHeaderBytes, () => readBlock(hasChecksum))
    if (hasChecksum) skipped += checksumBytes
    return false
  }

  begin()
  let isLast = false
  return {
    scan(bytes) {
      for (let at = 0; ;) {
        const step = Math.min(skipped, bytes.length - at)
        at += step
        skipped -= step
        if (skipped > 0) return undefined
        if (isLast) {
          isLast = false
          begin()
          return at
        }
        if (at === bytes.length) return undefined
        const end = Math.min(bytes.length, at + wanted - filled)
        filled += bytes.copy(field, filled, at, end)
        at = end
        if (filled === wanted) isLast = !onField()
      }
    },
  }
}
