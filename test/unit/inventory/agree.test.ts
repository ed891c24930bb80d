import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createFacts } from '../../../src/host/facts.ts'
import { agree, supplementOf } from '../../../src/inventory/rules/agree.ts'
import type { Hardware } from '../../../src/inventory/schemas.ts'
import { clockAt, programs, recordingLog } from '../../fixtures/host/edges.ts'
import { answer, queryLine } from '../../fixtures/host/nvidia-smi.ts'
import { machine } from '../../fixtures/host/tree.ts'
import { createRandom } from '../../support/random.ts'

const rack = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../fixtures/inventory/rack-server.json'), 'utf8'),
) as Hardware

/** The facts of a host and its inventory, as they are shown. */
async function both(hardware: Hardware, tree: string, changes = '') {
  const { log } = recordingLog()
  const { runner } = programs({ [queryLine]: answer('Disabled', 'Disabled') })
  const facts = createFacts({
    ...{ files: machine(tree, changes), runner, privileged: runner, clock: clockAt(0), log },
    supplement: supplementOf(() => hardware),
  })
  await facts.refresh(new Set(['all']))
  return { spec: facts.values(), inventory: agree(hardware, facts.hardware()) }
}

const addressOf = (underscored: string) => underscored.replace(/^(.+)_(..)_(..)_(.)$/, '$1:$2:$3.$4')

it('the facts take the maker of a disk from the inventory where the kernel has none, and only for a disk of the same size', async () => {
  const maker = (vendor: string) => ({
    ...rack,
    disks: rack.disks.map((disk) => (disk.name === 'sdb' ? { ...disk, vendor } : disk)),
  })
  const vendorOf = async (hardware: Hardware) =>
    (await both(hardware, 'rack-server')).spec.disks?.find(({ name }) => name === 'sdb')?.vendor
  expect(await vendorOf(rack)).toBeUndefined()
  expect(await vendorOf(maker('Seagate'))).toBe('Seagate')
  const other = maker('Seagate').disks.map((disk) => ({ ...disk, sizeBytes: 2 ** 40 }))
  expect(await vendorOf({ ...rack, disks: other })).toBeUndefined()
})

it('the facts take model and memory of a display controller from the inventory where no driver reports them', async () => {
  const changes = '/sys/bus/pci/devices/0000:41:00.0/vendor = 0x1234'
  const graphics = [{ address: '0000:41:00.0', vendor: 'Acme', model: 'G200', memoryMiB: 16 }]
  const { spec } = await both({ ...rack, graphics }, 'rack-server', changes)
  expect(spec.gpus).toContainEqual({
    ...{ vendor: 'Acme', model: 'G200', memory: '16 MiB', gpuCount: 1 },
    addresses: { 0: '0000_41_00_0' },
  })
})

it('facts and inventory name the same makers, models and memory, whichever values each of them has', async () => {
  const random = createRandom(7)
  const maybe = <T>(value: T) => (random.isChosen(0.5) ? value : undefined)
  let compared = 0
  for (const tree of ['rack-server', 'laptop', 'gpu-host', 'single-board']) {
    const { spec: plain } = await both({ ...rack, disks: [], graphics: [] }, tree)
    for (let turn = 0; turn < 12; turn += 1) {
      const without = (fields: object) =>
        Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
      const hardware: Hardware = {
        ...rack,
        disks: (plain.disks ?? []).map(({ name, size }) =>
          without({
            name,
            sizeBytes: maybe(size * 2 ** 30),
            vendor: maybe(random.pick(['Acme', 'Samsung'])),
          }),
        ),
        graphics: plain.gpus
          .flatMap(({ addresses }) => Object.values(addresses))
          .map((each) =>
            without({
              ...{ address: addressOf(each), vendor: maybe('Acme'), model: maybe('G1') },
              memoryMiB: maybe(random.below(5) + 1),
            }),
          ),
      }
      const { spec, inventory } = await both(hardware, tree)
      for (const disk of spec.disks ?? []) {
        const shown = inventory.disks.find(({ name }) => name === disk.name)
        if (disk.vendor !== undefined) expect(shown?.vendor).toBe(disk.vendor)
        compared += 1
      }
      for (const gpu of spec.gpus)
        for (const each of Object.values(gpu.addresses)) {
          const shown = inventory.graphics.find(({ address }) => address === addressOf(each))
          expect(shown?.vendor).toBe(gpu.vendor)
          expect(shown?.model).toBe(gpu.model)
          expect(shown?.memoryMiB === undefined ? undefined : `${shown.memoryMiB} MiB`).toBe(gpu.memory)
          compared += 1
        }
    }
  }
  expect(compared).toBeGreaterThan(200)
})
