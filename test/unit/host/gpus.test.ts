import { describe, expect, it } from 'vitest'
import type { HostFiles } from '../../../src/host/files.ts'
import {
  migOf,
  readDisplayControllers,
  toDisplays,
  toGpus,
  parseQuery,
  readNvidia,
  toSysfsAddress,
} from '../../../src/host/graphics/gpus.ts'
import { CommandFailed, type CommandRunner } from '../../../src/system/runner.ts'
import { programs } from '../../fixtures/host/edges.ts'
import { answer, list, listLine, queryLine } from '../../fixtures/host/nvidia-smi.ts'
import { machine } from '../../fixtures/host/tree.ts'

async function readGpus(files: HostFiles, runner: CommandRunner) {
  const { gpus, problems } = await readNvidia(files, runner)
  return { gpus: toGpus(toDisplays(await readDisplayControllers(files), gpus)), problems }
}

const bmc = {
  vendor: 'ASPEED',
  model: 'ASPEED Graphics Family',
  gpuCount: 1,
  addresses: { 0: '0000_03_00_0' },
}
const nvidia = {
  vendor: 'NVIDIA',
  model: 'NVIDIA A100-SXM4-40GB',
  gpuCount: 2,
  addresses: { 0: '0000_3b_00_0', 1: '0000_86_00_0' },
}
const amd = {
  vendor: 'AMD',
  model: 'Navi 21 [Radeon Pro V620]',
  memory: '30704 MiB',
  gpuCount: 1,
  addresses: { 0: '0000_af_00_0' },
}
const failing = (error: CommandFailed): CommandRunner => ({ run: () => Promise.reject(error) })
const printing = (exitCode: number, stdout: string): CommandRunner => ({
  run: async () => ({ exitCode, stdout, stderr: '' }),
})

describe('graphics processors of a GPU host', () => {
  it('GPUs are counted by model and memory, without the virtual functions of a card', async () => {
    const { runner, ran } = programs({ [queryLine]: answer('Disabled', 'Disabled') })
    expect(await readGpus(machine('gpu-host'), runner)).toEqual({
      gpus: [bmc, { ...nvidia, memory: '40960 MiB', migCapable: true, migStrategy: 'none' }, amd],
      problems: [],
    })
    expect(ran).toEqual([queryLine])
  })

  it('GPUs are known without a problem where nvidia-smi cannot be started', async () => {
    expect(await readGpus(machine('gpu-host'), programs().runner)).toEqual({
      gpus: [bmc, nvidia, amd],
      problems: [],
    })
  })

  it('GPUs are known, with a problem, when nvidia-smi hangs', async () => {
    const runner = failing(new CommandFailed('nvidia-smi', 'timed-out', '10000 ms'))
    expect(await readGpus(machine('gpu-host'), runner)).toEqual({
      gpus: [bmc, nvidia, amd],
      problems: ['nvidia-smi: timed-out (10000 ms)'],
    })
  })

  it('the values of the other GPUs are kept when one GPU is lost', async () => {
    const lost = 'Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n'
    const rows = answer('Disabled', 'Disabled').split('\n')[1]!
    const { gpus, problems } = await readGpus(machine('gpu-host'), printing(255, `${lost}${rows}\n`))
    expect(gpus.slice(1, 3)).toEqual([
      { ...nvidia, gpuCount: 1, addresses: { 0: '0000_3b_00_0' } },
      {
        ...nvidia,
        gpuCount: 1,
        addresses: { 0: '0000_86_00_0' },
        memory: '40960 MiB',
        migCapable: true,
        migStrategy: 'none',
      },
    ])
    expect(problems).toEqual([`nvidia-smi ended with 255: ${lost.trim()}`])
  })

  it.each([
    [['1g.5gb', '1g.5gb'], ['1g.5gb'], 'single'],
    [['3g.20gb', '1g.5gb'], ['1g.5gb'], 'mixed'],
  ])('GPUs divided into %j and %j follow the strategy %3$s', async (first, second, strategy) => {
    const { runner, ran } = programs({
      [queryLine]: answer('Enabled', 'Enabled'),
      [listLine]: list(first, second),
    })
    const { gpus } = await readGpus(machine('gpu-host'), runner)
    expect(gpus[1]).toMatchObject({ migCapable: true, migStrategy: strategy, gpuCount: 2 })
    expect(ran).toEqual([queryLine, listLine])
  })
})

describe('machines', () => {
  it('nvidia-smi is not run without the driver', async () => {
    const { runner, ran } = programs()
    expect((await readGpus(machine('rack-server'), runner)).gpus).toEqual([
      {
        vendor: 'NVIDIA',
        model: 'NVIDIA A100-SXM4-40GB',
        gpuCount: 1,
        addresses: { 0: '0000_11_00_0' },
      },
      { vendor: 'NVIDIA', gpuCount: 1, addresses: { 0: '0000_12_00_0' } },
      { vendor: 'AMD', gpuCount: 1, addresses: { 0: '0000_41_00_0' } },
    ])
    expect(ran).toEqual([])
  })

  it('nvidia-smi is not run where only the driver is there', async () => {
    const { runner, ran } = programs({ [queryLine]: answer('Disabled', 'Disabled') })
    const files = machine('rack-server', '/proc/driver/nvidia/version = NVRM version: 550\n')
    expect((await readGpus(files, runner)).problems).toEqual([])
    expect(ran).toEqual([])
  })

  it('a machine without a display controller has no GPU', async () => {
    expect(await readGpus(machine('container'), programs().runner)).toEqual({ gpus: [], problems: [] })
  })

  it('an Intel card with two tiles has the memory of both', async () => {
    const card = '/sys/bus/pci/devices/0000:4d:00.0'
    const files = machine(
      '',
      `${card}/class = 0x038000
${card}/vendor = 0x8086
${card}/device = 0x0bd5
${card}/tile0/physical_vram_size_bytes = 68719476736
${card}/tile1/physical_vram_size_bytes = 68719476736
`,
    )
    expect((await readGpus(files, programs().runner)).gpus).toEqual([
      { vendor: 'Intel', memory: '131072 MiB', gpuCount: 1, addresses: { 0: '0000_4d_00_0' } },
    ])
  })

  it('a vendor id without a name of ours gets that of udev', async () => {
    const files = machine(
      '',
      `/sys/bus/pci/devices/10000:01:00.0/class = 0x030000
/sys/bus/pci/devices/10000:01:00.0/vendor = 0x1ed5
/run/udev/data/+pci:10000:01:00.0 <<
E:ID_VENDOR_FROM_DATABASE=Moore Threads Technology Co.,Ltd
>>
`,
    )
    expect((await readGpus(files, programs().runner)).gpus).toEqual([
      { vendor: 'Moore Threads Technology Co.,Ltd', gpuCount: 1, addresses: { 0: '10000_01_00_0' } },
    ])
  })
})

describe('nvidia-smi', () => {
  it.each([
    ['00000000:3B:00.0', '0000:3b:00.0'],
    ['00010000:01:00.0', '10000:01:00.0'],
    ['00000009:01:00.0', '0009:01:00.0'],
  ])('the address %s of nvidia-smi is %s in sysfs', (busId, address) => {
    expect(toSysfsAddress(busId)).toBe(address)
  })

  it.each([
    [
      'Quadro, the old one, 8192, [N/A]',
      { name: 'Quadro, the old one', memoryMiB: 8192, mig: 'unsupported' },
    ],
    ['GeForce, 8192, [Not Supported]', { name: 'GeForce', memoryMiB: 8192, mig: 'unsupported' }],
    ['NVIDIA GB10, [N/A], [N/A]', { name: 'NVIDIA GB10', mig: 'unsupported' }],
    ['[Unknown Error], [Unknown Error], [Unknown Error]', {}],
  ])('a row of nvidia-smi with %j is parsed', (fields, gpu) => {
    expect(parseQuery(`00000000:3B:00.0, GPU-1, ${fields}\n`)).toEqual([
      { address: '0000:3b:00.0', uuid: 'GPU-1', gpu },
    ])
  })

  it('an error that nvidia-smi prints is not parsed as a GPU', () => {
    expect(
      parseQuery("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"),
    ).toEqual([])
  })
})

describe('division', () => {
  const enabled = (...migProfiles: string[]) => ({ mig: 'enabled' as const, migProfiles })
  it.each([
    ['unknown without a driver', [{}], {}],
    ['unknown when one does not answer', [{ mig: 'disabled' as const }, {}], {}],
    ['impossible', [{ mig: 'unsupported' as const }], { migCapable: false }],
    ['not made', [{ mig: 'disabled' as const }], { migCapable: true, migStrategy: 'none' }],
    ['open before the first instance', [enabled()], { migCapable: true }],
    ['open when instances could not be asked', [{ mig: 'enabled' as const }], { migCapable: true }],
    ['single', [enabled('7g.40gb'), enabled('7g.40gb')], { migCapable: true, migStrategy: 'single' }],
    [
      'mixed when one is whole',
      [enabled('7g.40gb'), { mig: 'disabled' as const }],
      { migCapable: true, migStrategy: 'mixed' },
    ],
  ])('the MIG strategy is %s', (_, gpus, expected) => {
    expect(migOf(gpus)).toEqual(expected)
  })
})
