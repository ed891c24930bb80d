/** Architectures by the names of Go, which images and folders of programs use. */
export const architectures: ReadonlySet<string> = new Set([
  ...['386', 'amd64', 'arm', 'arm64', 'loong64', 'ppc64', 'ppc64le', 'riscv64', 's390x'],
])

// e_machine of elf(5): <elf.h>. Those with two byte orders are told apart below.
const machines: Readonly<Record<number, string>> = {
  3: '386',
  21: 'ppc64',
  22: 's390x',
  40: 'arm',
  62: 'amd64',
  183: 'arm64',
  243: 'riscv64',
  258: 'loong64',
}

const magic = Buffer.from([0x7f, 0x45, 0x4c, 0x46])

/**
 * The architecture of a program.
 * @param start its first 20 bytes
 * @returns the name of Go, `machine N` for one that is not known, undefined if it is no ELF file
 */
export function elfArchitecture(start: Buffer): string | undefined {
  if (start.length < 20 || !start.subarray(0, 4).equals(magic)) return undefined
  const isLittle = start[5] === 1
  const machine = isLittle ? start.readUInt16LE(18) : start.readUInt16BE(18)
  const name = machines[machine]
  return name === 'ppc64' && isLittle ? 'ppc64le' : (name ?? `machine ${machine}`)
}
