import { describe, expect, it } from 'vitest'
import { createHostSettings } from '../../../../src/cluster/host/settings.ts'
import type { SettingObserved } from '../../../../src/cluster/loop/observed.ts'
import type { HostFiles } from '../../../../src/host/files.ts'
import { noSetting } from '../../../support/cluster-parts.ts'

const notes = { ntpServers: '/state/ntp-servers.json', sshKeys: '/state/ssh-keys.json' }
const keys = ['ssh-ed25519 AAAA a']
const due: SettingObserved = { isApplied: false, isDue: true, isPlaced: false, problem: '' }

/** A host on which the look at the keys finds what is given, and a clock. */
function world(finds: () => SettingObserved | string = () => noSetting) {
  const texts = new Map<string, string>()
  const files: HostFiles = {
    text: async (path) => texts.get(path),
    names: async () => [],
    link: async () => undefined,
  }
  const looks: unknown[] = []
  const clock = { now: 0 }
  const settings = createHostSettings({
    ...{ files, notes, account: 'operator', program: '/lib/step.cjs', monotonic: () => clock.now },
    privileged: {
      async run(program, args, { input }) {
        expect([program, args]).toEqual([process.execPath, ['/lib/step.cjs', 'look-at-ssh-keys']])
        looks.push(JSON.parse(input as string))
        const found = finds()
        return typeof found === 'string'
          ? { exitCode: 1, stdout: `at work\n${found}\n`, stderr: '' }
          : { exitCode: 0, stdout: JSON.stringify(found), stderr: '' }
      },
    },
  })
  return { settings, texts, looks, clock }
}

describe('the look at the keys', () => {
  it('starts no program where no keys are wanted and none were placed', async () => {
    const { settings, looks, texts } = world()
    expect((await settings.observe({ ntpServers: [], sshKeys: [] })).sshKeys).toEqual(noSetting)
    texts.set(notes.sshKeys, '{}')
    expect((await settings.observe({ ntpServers: [], sshKeys: [] })).sshKeys).toEqual({
      ...due,
      isPlaced: true,
    })
    expect(looks).toEqual([])
  })

  it('is made once a minute, and at once for other keys, after a step, and while something is due', async () => {
    let found: SettingObserved = noSetting
    const { settings, looks, texts, clock } = world(() => found)
    const look = (sshKeys = keys) => settings.observe({ ntpServers: [], sshKeys })
    await look()
    await look()
    expect(looks).toEqual([{ note: notes.sshKeys, account: 'operator', keys }])
    clock.now = 60_000
    await look()
    expect(looks).toHaveLength(2)
    await look([...keys, 'another'])
    texts.set(notes.sshKeys, '{"placed":[]}')
    await look([...keys, 'another'])
    expect(looks).toHaveLength(4)
    found = due
    clock.now = 120_000
    await look([...keys, 'another'])
    await look([...keys, 'another'])
    expect(looks).toHaveLength(6)
  })

  it('that fails is a problem, not a step', async () => {
    const { settings } = world(() => 'no rights')
    const seen = await settings.observe({ ntpServers: [], sshKeys: keys })
    expect(seen.sshKeys).toMatchObject({
      isApplied: false,
      isDue: false,
      problem: expect.stringContaining('no rights'),
    })
    expect(settings.steps({ ntpServers: [], sshKeys: keys }, seen)).toEqual([])
  })
})

it('steps give what is due, and a deletion takes away what was placed', () => {
  const { settings } = world()
  const wanted = { ntpServers: ['a.example'], sshKeys: keys }
  expect(settings.steps(wanted, { ntpServers: noSetting, sshKeys: noSetting })).toEqual([])
  expect(settings.steps(wanted, { ntpServers: due, sshKeys: due })).toMatchObject([
    { key: 'ntp-servers', work: { order: { note: notes.ntpServers, servers: ['a.example'] } } },
    { key: 'ssh-keys', work: { order: { note: notes.sshKeys, account: 'operator', keys } } },
  ])
  expect(settings.restoreSteps({ ntpServers: due, sshKeys: due })).toEqual([])
  const placed = { ...noSetting, isPlaced: true }
  expect(settings.restoreSteps({ ntpServers: placed, sshKeys: placed })).toMatchObject([
    { key: 'take-ntp-servers', work: { action: 'ntp-servers', order: { servers: [] } } },
    { key: 'take-ssh-keys', work: { action: 'ssh-keys', order: { keys: [] } } },
  ])
})

it('the pre-flight warns of what this host cannot have, with the place in what was posted', async () => {
  const { settings } = world(() => ({ ...noSetting, isApplied: false, problem: 'no home' }))
  expect(await settings.preflight({ ntpServers: [], sshKeys: [] })).toEqual([])
  expect(await settings.preflight({ ntpServers: ['a.example'], sshKeys: keys })).toMatchObject([
    {
      ...{ code: 'SettingNotApplied', severity: 'warning' },
      path: 'spec.cloudConfig.spec.clusterConfig.ntpServers',
      message: expect.stringContaining('no time service runs'),
    },
    { path: 'spec.cloudConfig.spec.clusterConfig.sshKeys', message: expect.stringContaining('no home') },
  ])
})
