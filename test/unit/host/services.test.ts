import { describe, expect, it } from 'vitest'
import {
  archTypeOf,
  countCpuList,
  readCores,
  toGiB,
  toMiB,
  parseAssignments,
  readOperatingSystem,
} from '../../../src/host/machine.ts'
import { machine } from '../../fixtures/host/tree.ts'

describe('units', () => {
  it('memory is MiB rounded down', () => {
    expect(toMiB(7930.9 * 2 ** 20)).toBe(7930)
  })

  it('disk space is GiB rounded to the nearest', () => {
    expect([0.49, 0.5, 299.6].map((gib) => toGiB(gib * 2 ** 30))).toEqual([0, 1, 300])
  })
})

describe('processors', () => {
  it.each([
    ['0\n', 1],
    ['0-3', 4],
    ['0-31,64-95', 64],
    ['0,2-3', 3],
    ['', 0],
  ])('the processor list %j counts %i', (list, cores) => {
    expect(countCpuList(list)).toBe(cores)
  })

  it('an empty processor list of the kernel is an error', async () => {
    await expect(readCores(machine('container'))).rejects.toThrow('online')
  })

  it("the architecture has Debian's name", () => {
    expect(['x64', 'arm64', 'riscv64'].map(archTypeOf)).toEqual(['amd64', 'arm64', 'riscv64'])
  })
})

describe('operating system', () => {
  it('the operating system comes from os-release and the kernel', async () => {
    expect(await readOperatingSystem(machine('rack-server'))).toEqual({
      family: 'ubuntu',
      version: '24.04',
      kernel: 'Linux',
      kernelVersion: '6.8.0-60-generic',
    })
  })

  it('a distribution without a version has none, and one without an ID has the family of ID_LIKE', async () => {
    const files = machine('', '/etc/os-release <<\nID_LIKE="debian ubuntu"\n>>\n')
    expect(await readOperatingSystem(files)).toEqual({ family: 'debian' })
  })

  it('a folder in place of os-release is passed over', async () => {
    const files = machine('', '/etc/os-release/\n/usr/lib/os-release = ID=debian\n')
    expect(await readOperatingSystem(files)).toEqual({ family: 'debian' })
  })

  it('quotes in os-release are parsed as by the shell', () => {
    const values = parseAssignments('A="b \\"c\\" \\$d"\nB=\'e "f"\'\nC=g\n#D=h\n')
    expect(Object.fromEntries(values)).toEqual({ A: 'b "c" $d', B: 'e "f"', C: 'g' })
  })
})
