import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, openSync, closeSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { eventually } from './eventually.ts'
import { cgroupsOf, plainGround, type Ground } from './ground.ts'
import { run } from './process.ts'
import { lowerFolder, type Lower } from './roots.ts'

/** A booted systemd, as the machine sees it. */
export interface Machine {
  /** Process id of its PID 1; another one after a reboot. */
  readonly leader: number
  /** Process id of what holds it, over reboots too. */
  readonly holder: number
  /** A folder of its own on the test machine. */
  readonly folder: string
  /** The output of PID 1 on its console. */
  console(): string
  /** Shuts systemd down in order and boots it again, in a network of its own as before. */
  reboot(): Promise<void>
  /** Waits until it has booted again, after something that reboots it. */
  rebootBy(act: () => Promise<unknown>): Promise<void>
  /** Waits until it is off, after something that shuts it down; then it can only be unplugged. */
  shutDownBy(act: () => Promise<unknown>): Promise<void>
  /** Ends everything that runs on it at once, as a power cut does, and boots it again. What it has written stays. */
  cutPower(): Promise<void>
  /** Ends it at once and removes everything of it. */
  unplug(): Promise<void>
}

// Everything mounted here is in the mount namespace of this one process and ends with it. Units that the machine
// itself has enabled do not start on the host: only those that systemd itself wants (journal, bus, logind).
const script = `
set -eu
folder=$1 name=$2 lower=$3 cgroups=$4 prepare=$5; shift 5
mount -t tmpfs -o mode=0755 tmpfs "$folder/cow"; mkdir "$folder/cow/upper" "$folder/cow/work"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$folder/cow/upper,workdir=$folder/cow/work" "$folder/root"
root=$folder/root
: > "$root/etc/machine-id"; echo "$name" > "$root/etc/hostname"
printf '127.0.0.1 localhost\\n::1 localhost\\n127.0.1.1 %s\\n' "$name" > "$root/etc/hosts"
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/rc?.d
# Nor does dpkg then rebuild the index of all manual pages of the machine, which takes seconds.
rm -f "$root"/var/lib/man-db/auto-update
# What the machine has and the package has to bring along must not be found by accident.
rm -f "$root"/usr/bin/pamtester "$root"/usr/bin/node "$root"/usr/local/bin/node
mkdir $cgroups
eval "$prepare"
# 133 is what it ends with when the host wants to be booted again; the file is there after a power cut.
while true; do
  code=0
  (
    for cgroup in $cgroups; do echo 0 > "$cgroup/cgroup.procs"; done
    exec systemd-nspawn --directory="$root" --machine="$name" --boot --register=no --keep-unit --link-journal=no "$@"
  ) || code=$?
  [ $code = 133 ] || rm "$folder/power-cut" 2> /dev/null || exit $code
  # What containers of the host had is not there after a boot.
  find $cgroups -mindepth 1 -depth -type d -exec rmdir {} +
done
`

export interface BootOptions {
  readonly lower: Lower
  /** Further arguments of systemd-nspawn. */
  readonly nspawn?: readonly string[]
  /** What it stands on; by default a network of its own with nothing in it. */
  readonly ground?: Ground
}

/** Boots a root filesystem, copy on write, with systemd as PID 1. Takes about a second. */
export async function boot({
  lower,
  nspawn: more = [],
  ground = plainGround,
}: BootOptions): Promise<Machine> {
  if (process.getuid?.() !== 0) throw new Error('booting hosts needs root')
  const folder = await mkdtemp(join(tmpdir(), `edgehost-${process.pid}-`))
  const name = folder.slice(folder.lastIndexOf('/') + 1).toLowerCase()
  const cgroups = ground.cgroups(name)
  await mkdir(join(folder, 'root'))
  await mkdir(join(folder, 'cow'))
  const log = join(folder, 'console')
  const console = openSync(log, 'a')
  // The host ends with the test process in any case: the kernel kills a process namespace with its first process.
  const nspawn = spawn(
    'setpriv',
    [
      ...['--pdeathsig', 'KILL', 'unshare', '--pid', '--fork', '--kill-child', '--mount', '--mount-proc'],
      ...ground.namespaces,
      // What another test unmounts goes from here too; a power cut leaves a file system that must not stay in use.
      ...['--propagation', 'slave', 'bash', '-c', script, 'boot', folder, name, await lowerFolder(lower)],
      ...[cgroups.join(' '), ground.prepare, ...ground.nspawn(folder), ...more],
    ],
    {
      stdio: ['ignore', console, console],
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', ...ground.environment },
    },
  )
  closeSync(console)
  const ended = new Promise<void>((resolve) => nspawn.once('exit', () => resolve()))
  const unplug = async () => {
    nspawn.kill('SIGKILL')
    await ended
    for (const cgroup of cgroups) {
      await thaw(cgroup)
      await removeCgroup(cgroup)
    }
    await rm(folder, { recursive: true, force: true })
  }
  const readConsole = () => readFileSync(log, 'utf8')
  try {
    let leader = await leaderOf(nspawn, readConsole)
    const holder = (await firstChild(nspawn.pid))!
    const rebootBy = async (act: () => Promise<unknown>) => {
      await act()
      leader = await leaderOf(nspawn, readConsole, leader, shutdownMs + bootMs)
    }
    return {
      get leader() {
        return leader
      },
      holder,
      folder,
      console: readConsole,
      reboot: () => rebootBy(() => run('nsenter', ['-t', String(leader), '-a', 'systemctl', 'reboot'])),
      rebootBy,
      async shutDownBy(act) {
        await act()
        await eventually(() => expect(nspawn.exitCode, readConsole()).toBe(0), shutdownMs)
      },
      async cutPower() {
        await writeFile(join(folder, 'power-cut'), '')
        process.kill(leader, 'SIGKILL')
        // Again until it is gone: a program may freeze a container after the first look.
        await eventually(async () => {
          for (const cgroup of cgroups) await thaw(cgroup)
          if (existsSync(`/proc/${leader}`)) throw new Error(`PID 1 does not end:\n${readConsole()}`)
        }, bootMs)
        leader = await leaderOf(nspawn, readConsole, leader)
      },
      unplug,
    }
  } catch (error) {
    await unplug()
    throw error
  }
}

const bootMs = 60_000
/** Processes of containers that ignore SIGTERM have 90 s. */
const shutdownMs = 180_000

async function leaderOf(
  nspawn: ChildProcess,
  console: () => string,
  former?: number,
  timeoutMs = bootMs,
): Promise<number> {
  return eventually(async () => {
    if (nspawn.exitCode !== null)
      throw new Error(`systemd-nspawn ended with ${nspawn.exitCode}:\n${console()}`)
    const script = await firstChild(nspawn.pid)
    const leader = await firstChild(await firstChild(script))
    if (!leader || leader === former) throw new Error(`no PID 1 yet:\n${console()}`)
    const { stdout } = await run('nsenter', ['-t', String(leader), '-a', 'systemctl', 'is-system-running'])
    // "degraded" is allowed: some units cannot work in a container.
    if (!/^(running|degraded)$/m.test(stdout)) throw new Error(`still ${stdout.trim()}:\n${console()}`)
    return leader
  }, timeoutMs)
}

async function firstChild(pid: number | undefined): Promise<number | undefined> {
  if (!pid) return undefined
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return Number(children.split(' ')[0]) || undefined
}

/** Removes what the hosts of ended test processes have left. */
export async function sweep(): Promise<void> {
  const left = (await readdir(tmpdir())).filter((name) => {
    const owner = /^edgehost-(\d+)-/.exec(name)?.[1]
    return owner !== undefined && !existsSync(`/proc/${owner}`)
  })
  for (const name of left) {
    for (const cgroup of cgroupsOf(name.toLowerCase())) {
      await thaw(cgroup)
      await removeCgroup(cgroup)
    }
    await rm(join(tmpdir(), name), { recursive: true, force: true })
  }
}

/** A process of a container that is frozen, as while it is made, does not end, and keeps its host from ending. */
async function thaw(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => []))
    if (entry.isDirectory()) await thaw(join(folder, entry.name))
  for (const [name, thawed] of [
    ['freezer.state', 'THAWED'],
    ['cgroup.freeze', '0'],
  ] as const)
    await writeFile(join(folder, name), thawed, { flag: 'r+' }).catch(() => undefined)
}

async function removeCgroup(folder: string): Promise<void> {
  if (!existsSync(folder)) return
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeCgroup(join(folder, entry.name))
  }
  // Busy until the last process of the host is reaped.
  await eventually(() => rmdir(folder))
}
