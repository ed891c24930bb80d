import { chmod, chown, lstat, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { observeSshKeys, placeSshKeys } from '../../../../src/cluster/host/ssh-keys.ts'
import { missingFolderIn, readKeyFiles } from '../../../../src/host/ssh-keys.ts'
import { observeNtpServers, placeNtpServers } from '../../../../src/cluster/host/ntp-servers.ts'
import { createHostFiles } from '../../../../src/host/files.ts'
import { CommandFailed, type CommandRunner } from '../../../../src/system/runner.ts'
import { publicKeys } from '../../../support/ssh-keys.ts'

const noted = '/var/lib/edgehostd/cluster/note.json'
let root = ''
beforeEach(async () => {
  // Beside the folder of the tests, into which the account of the keys cannot go.
  root = await mkdtemp(join(dirname(tmpdir()), 'edgehostd-settings-'))
  await chmod(root, 0o755)
  onTestFinished(() => rm(root, { recursive: true, force: true }))
})
const inRoot = (path: string) => join(root, path)
async function put(path: string, text: string) {
  await mkdir(dirname(inRoot(path)), { recursive: true })
  await writeFile(inRoot(path), text)
}
const textOf = (path: string) => readFile(inRoot(path), 'utf8').catch(() => undefined)

/** A runner of played programs, and what was run. */
function played(answers: Readonly<Record<string, { exitCode?: number; stdout?: string }>>) {
  const ran: string[] = []
  const runner: CommandRunner = {
    async run(program, args) {
      const line = [program, ...args].join(' ')
      ran.push(line)
      const answer = answers[line] ?? answers[program]
      if (!answer) throw new CommandFailed(program, 'not-started', 'it is not installed')
      return { exitCode: 0, stdout: '', stderr: '', ...answer }
    },
  }
  return { runner, ran }
}

describe('NTP servers', () => {
  const timesyncd = 'systemd-timesyncd.service'
  const dropIn = '/etc/systemd/timesyncd.conf.d/zz-edgehostd-cluster.conf'
  const runs = (unit: string, isRunning = true) =>
    put(`/sys/fs/cgroup/system.slice/${unit}/cgroup.events`, `populated ${Number(isRunning)}\n`)
  const at = () => ({ files: createHostFiles(root), note: noted })
  function world(answers: Parameters<typeof played>[0] = { systemctl: {}, chronyc: {} }) {
    const { runner, ran } = played(answers)
    const place = (...servers: string[]) =>
      placeNtpServers({ ...at(), root, runner, print: () => undefined }, servers)
    const observe = (...servers: string[]) => observeNtpServers(at(), servers)
    return { place, observe, ran }
  }
  const applied = { isApplied: true, isDue: false, isPlaced: true, problem: '' }
  const none = { ...applied, isPlaced: false }
  const due = { ...applied, isApplied: false, isDue: true }

  it('are a drop-in that the service reads, once, and are put back with the folder that was made', async () => {
    await runs(timesyncd)
    const { place, observe, ran } = world()
    expect(await observe()).toEqual(none)
    expect(await observe('a.example')).toEqual({ ...due, isPlaced: false })
    await place('a.example', '192.0.2.1')
    expect(await textOf(dropIn)).toContain('\nNTP=\nNTP=a.example 192.0.2.1\n')
    expect((await lstat(inRoot(dropIn))).mode & 0o777).toBe(0o644)
    expect(await observe('a.example', '192.0.2.1')).toEqual(applied)
    expect(ran).toEqual([`systemctl try-restart ${timesyncd}`])
    expect(await observe('192.0.2.1', 'a.example')).toEqual(due)
    expect(await observe()).toEqual(due)
    await place()
    expect([await textOf(dropIn), await textOf(noted)]).toEqual([undefined, undefined])
    expect(await lstat(inRoot(dirname(dropIn))).catch(() => undefined)).toBeUndefined()
    expect(ran).toHaveLength(2)
    expect(await observe()).toEqual(none)
  })

  it('a file that was changed or removed by hand is put right', async () => {
    await runs(timesyncd)
    const { place, observe } = world()
    await place('a.example')
    const text = await textOf(dropIn)
    for (const spoil of [() => put(dropIn, `${text}NTP=evil.example\n`), () => rm(inRoot(dropIn))]) {
      await spoil()
      expect(await observe('a.example')).toEqual(due)
      await place('a.example')
      expect(await textOf(dropIn)).toBe(text)
      expect(await observe('a.example')).toEqual(applied)
    }
  })

  it('a step that was cut off before the service has read the file is done again', async () => {
    await runs(timesyncd)
    const failing = world({ systemctl: { exitCode: 1 } })
    await expect(failing.place('a.example')).rejects.toThrow(timesyncd)
    expect(await failing.observe('a.example')).toEqual(due)
    const { place, observe, ran } = world()
    await place('a.example')
    expect(ran).toHaveLength(1)
    expect(await observe('a.example')).toEqual(applied)
  })

  it('a file of an administrator stays as it is', async () => {
    await runs(timesyncd)
    await put(dropIn, '[Time]\nNTP=own.example\n')
    const { place, observe, ran } = world()
    expect(await observe('a.example')).toMatchObject({
      isDue: false,
      problem: expect.stringContaining(dropIn),
    })
    await expect(place('a.example')).rejects.toThrow('not overwritten')
    await place()
    expect([await textOf(dropIn), ran]).toEqual(['[Time]\nNTP=own.example\n', []])
  })

  it('a folder or a link in the place of the file is no file of edgehostd', async () => {
    await runs(timesyncd)
    const { observe, place } = world()
    await mkdir(inRoot(dropIn), { recursive: true })
    expect(await observe('a.example')).toMatchObject({
      isDue: false,
      problem: expect.stringContaining(dropIn),
    })
    await rm(inRoot(dropIn), { recursive: true })
    await put('/etc/other', 'secret')
    await symlink(inRoot('/etc/other'), inRoot(dropIn))
    await expect(place('a.example')).rejects.toThrow(dropIn)
    expect(await textOf('/etc/other')).toBe('secret')
  })

  it('a host without a time service has a problem, and nothing to do', async () => {
    const { observe, place } = world()
    expect(await observe('a.example')).toMatchObject({ isApplied: false, isDue: false, isPlaced: false })
    await expect(place('a.example')).rejects.toThrow('no time service')
    expect(await observe()).toEqual(none)
  })

  it('another time service gets the servers, and the file of the first is taken away', async () => {
    await runs(timesyncd)
    const { place, observe, ran } = world()
    await place('a.example')
    await runs(timesyncd, false)
    await runs('chrony.service')
    await put('/etc/chrony/chrony.conf', 'sourcedir /etc/chrony/sources.d\n')
    expect(await observe('a.example')).toEqual(due)
    await place('a.example')
    expect(await textOf('/etc/chrony/sources.d/zz-edgehostd-cluster.sources')).toContain(
      'server a.example iburst',
    )
    expect(await textOf(dropIn)).toBeUndefined()
    expect(ran.at(-1)).toBe('chronyc reload sources')
    expect(await observe('a.example')).toEqual(applied)
  })

  it('an old chrony, which cannot read its sources again, is restarted', async () => {
    await runs('chrony.service')
    await put('/etc/chrony/chrony.conf', 'sourcedir /etc/chrony/sources.d\n')
    const { place, ran } = world({ chronyc: { exitCode: 1 }, systemctl: {} })
    await place('a.example')
    expect(ran).toEqual(['chronyc reload sources', 'systemctl try-restart chrony.service'])
  })

  it('what was placed is found without its note, or with a damaged one', async () => {
    await runs(timesyncd)
    const { place, observe } = world()
    for (const spoil of [() => rm(inRoot(noted)), () => put(noted, '{"placed":')]) {
      await place('a.example')
      await spoil()
      expect(await observe()).toEqual(due)
      await place()
      expect(await textOf(dropIn)).toBeUndefined()
    }
  })
})

describe.runIf(process.getuid?.() === 0)('SSH keys', () => {
  const { ed25519, rsa } = publicKeys
  const [uid, gid] = [40_907, 40_908]
  const home = () => inRoot('/home/operator')
  const folder = '/home/operator/.ssh'
  const file = `${folder}/authorized_keys2`
  const usual = 'authorizedkeysfile .ssh/authorized_keys .ssh/authorized_keys2\n'
  const account = 'operator'

  /** @param sshd what it prints; null where it is not installed */
  async function world(sshd: string | null = usual) {
    await mkdir(home(), { recursive: true })
    await chmod(home(), 0o700)
    await chown(home(), uid, gid)
    const { runner } = played({
      'getent passwd -- operator': { stdout: `operator:x:${uid}:${gid}:,,,:${home()}:/bin/sh\n` },
      getent: { exitCode: 2 },
      ...(sshd === null ? {} : { sshd: { stdout: `port 22\n${sshd}usepam yes\n` } }),
    })
    const work = (keys: readonly string[], of = account) => ({
      ...{ files: createHostFiles(root), root, note: noted, runner, account: of, keys },
    })
    return {
      place: (keys: readonly string[], of?: string) => placeSshKeys(work(keys, of), () => undefined),
      observe: (keys: readonly string[], of?: string) => observeSshKeys(work(keys, of)),
    }
  }
  async function own(path: string, text: string) {
    await put(path, text)
    await chown(inRoot(path), uid, gid)
    await chown(inRoot(dirname(path)), uid, gid)
  }
  const applied = { isApplied: true, isDue: false, isPlaced: true, problem: '' }

  it('are a file of the account beside its own one, and are taken away with the folder that was made', async () => {
    const { place, observe } = await world()
    expect(await observe([])).toEqual({ ...applied, isPlaced: false })
    expect(await observe([ed25519])).toMatchObject({ isApplied: false, isDue: true })
    await place([ed25519, rsa])
    expect((await textOf(file))?.split('\n').slice(1)).toEqual([ed25519, rsa, ''])
    for (const [path, mode] of [
      [folder, 0o700],
      [file, 0o600],
    ] as const) {
      const found = await lstat(inRoot(path))
      expect([found.uid, found.gid, found.mode & 0o777]).toEqual([uid, gid, mode])
    }
    expect(await observe([ed25519, rsa])).toEqual(applied)
    expect(await observe([ed25519])).toMatchObject({ isApplied: false, isDue: true })
    await place([ed25519])
    expect((await textOf(file))?.split('\n').slice(1)).toEqual([ed25519, ''])
    await place([])
    expect(await lstat(inRoot(folder)).catch(() => undefined)).toBeUndefined()
    expect(await textOf(noted)).toBeUndefined()
    expect([process.geteuid?.(), process.getegid?.()]).toEqual([0, 0])
  })

  it('the keys of an administrator stay, also where they are in the place of the file', async () => {
    const { place, observe } = await world()
    await own(`${folder}/authorized_keys`, rsa)
    await place([ed25519])
    await place([])
    expect([await textOf(`${folder}/authorized_keys`), await textOf(file)]).toEqual([rsa, undefined])
    await own(file, rsa)
    expect(await observe([ed25519])).toMatchObject({ isDue: false, problem: expect.stringContaining(file) })
    await expect(place([ed25519])).rejects.toThrow('not overwritten')
    expect(await textOf(file)).toBe(rsa)
  })

  it.each<[string, () => Promise<unknown>]>([
    ['a changed text', () => writeFile(inRoot(file), 'other')],
    ['a mode that others may read', () => chmod(inRoot(file), 0o644)],
    ['another owner', () => chown(inRoot(file), 0, 0)],
  ])('%s is seen', async (what, spoil) => {
    const { place, observe } = await world()
    await place([ed25519])
    await spoil()
    expect((await observe([ed25519])).isApplied).toBe(false)
    // What is not known to be of edgehostd is not written over.
    if (what === 'a changed text') return
    await place([ed25519])
    expect(await observe([ed25519])).toEqual(applied)
  })

  it.each<[string, () => Promise<unknown>]>([
    ['another owner', () => chown(inRoot(file), 0, 0)],
    ['a mode without any right', () => chmod(inRoot(file), 0)],
  ])('a placed file with %s, which the account cannot read, is put right', async (_what, spoil) => {
    const { place, observe } = await world()
    await place([ed25519])
    await spoil()
    expect(await observe([ed25519])).toMatchObject({ isApplied: false, isDue: true, problem: '' })
    await place([ed25519])
    expect(await observe([ed25519])).toEqual(applied)
    expect(await lstat(inRoot(file))).toMatchObject({ uid, gid })
    expect((await lstat(inRoot(file))).mode & 0o777).toBe(0o600)
  })

  it('a file that the account cannot read, and that was not placed, is not overwritten', async () => {
    const { place, observe } = await world()
    await own(`${folder}/authorized_keys`, rsa)
    await put(file, rsa)
    await chmod(inRoot(file), 0o600)
    expect((await observe([ed25519])).problem).toContain('is not overwritten')
    await expect(place([ed25519])).rejects.toThrow('is not overwritten')
    expect(await textOf(file)).toBe(rsa)
  })

  it('a folder that was made goes with the last of its files, also after sshd was given another file', async () => {
    await (await world()).place([ed25519])
    const { place } = await world('authorizedkeysfile .ssh/authorized_keys .ssh/keys.%u\n')
    await place([ed25519])
    expect(await textOf(file)).toBeUndefined()
    expect(await textOf(`${folder}/keys.operator`)).toContain(ed25519)
    await place([])
    expect(await lstat(inRoot(folder)).catch(() => undefined)).toBeUndefined()
  })

  it('a removed file comes back', async () => {
    const { place, observe } = await world()
    await place([ed25519])
    await rm(inRoot(file))
    expect(await observe([ed25519])).toMatchObject({ isDue: true })
    await place([ed25519])
    expect(await observe([ed25519])).toEqual(applied)
  })

  it('a link leads nowhere: neither that of the folder nor that of the file', async () => {
    const { place } = await world()
    await mkdir(inRoot('/etc/target'), { recursive: true })
    await symlink(inRoot('/etc/target'), inRoot(folder))
    await expect(place([ed25519])).rejects.toThrow('beyond a link')
    await rm(inRoot(folder))
    await own(`${folder}/authorized_keys`, rsa)
    await put('/etc/target/file', 'secret')
    await symlink(inRoot('/etc/target/file'), inRoot(file))
    await expect(place([ed25519])).rejects.toThrow('not a regular file')
    expect(await textOf('/etc/target/file')).toBe('secret')
  })

  it('a folder to which others may write is refused, as sshd ignores its keys', async () => {
    const { observe } = await world()
    await own(`${folder}/authorized_keys`, rsa)
    await chmod(inRoot(folder), 0o777)
    expect((await observe([ed25519])).problem).toContain('chmod go-w')
  })

  it.each([
    ['authorizedkeysfile .ssh/authorized_keys .ssh/keys.%u\n', `${folder}/keys.operator`],
    [
      'authorizedkeysfile %h/.ssh/authorized_keys /etc/ssh/keys/%u %h/more/keys\n',
      '/home/operator/more/keys',
    ],
    [null, file],
  ])('are where sshd looks: %j', async (sshd, path) => {
    const { place, observe } = await world(sshd)
    await place([ed25519])
    expect(await textOf(path)).toContain(ed25519)
    expect(await observe([ed25519])).toEqual(applied)
  })

  it.each([
    'authorizedkeysfile .ssh/authorized_keys\n',
    'authorizedkeysfile none\n',
    'authorizedkeysfile /etc/ssh/keys/%u\n',
  ])('an sshd that reads no further file is a problem: %j', async (sshd) => {
    const { observe, place } = await world(sshd)
    expect(await observe([ed25519])).toMatchObject({
      ...{ isDue: false, isPlaced: false, problem: expect.stringContaining('AuthorizedKeysFile') },
    })
    await expect(place([ed25519])).rejects.toThrow('AuthorizedKeysFile')
  })

  it.each([
    ['Missing privilege separation directory: /run/sshd\r\n', '/run/sshd'],
    ['a warning\nMissing privilege separation directory: /var/run/sshd\n', '/var/run/sshd'],
    ['Missing privilege separation directory: /var/empty/sshd\n', undefined],
    ['sshd: no hostkeys available -- exiting.\n', undefined],
  ])('of an sshd that does not run the folder in memory is known: %j', (said, folder) => {
    expect(missingFolderIn(said)).toBe(folder)
  })

  it('are where an sshd without host keys says, which a later version says with -G', async () => {
    const files = await readKeyFiles(
      {
        run: async (_program, [option]) => ({
          ...{ exitCode: option === '-G' ? 0 : 1, stderr: 'sshd: no hostkeys available -- exiting.\n' },
          stdout: option === '-G' ? 'authorizedkeysfile .ssh/authorized_keys .ssh/site\n' : '',
        }),
      },
      { name: 'operator', uid, gid, home: '/home/operator' },
    )
    expect(files).toEqual(['/home/operator/.ssh/authorized_keys', '/home/operator/.ssh/site'])
  })

  it('no account of the name, and a home that is not there, are problems that say what to do', async () => {
    const { observe } = await world()
    expect((await observe([ed25519], 'nobody-here')).problem).toContain('cluster.sshAccount')
    await rm(home(), { recursive: true })
    expect((await observe([ed25519])).problem).toContain('mkhomedir_helper')
  })

  it('are taken away from an account that this host does not have any more', async () => {
    const { place } = await world()
    await place([ed25519])
    const { runner } = played({ getent: { exitCode: 2 } })
    const files = createHostFiles(root)
    await placeSshKeys({ files, root, note: noted, runner, account, keys: [] }, () => undefined)
    expect(await textOf(file)).toBeUndefined()
  })
})
