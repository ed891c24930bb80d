import { randomUUID } from 'node:crypto'
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../e2e/host/eventually.ts'
import { systemPath } from '../../e2e/host/process.ts'
import type { Image } from './image.ts'
import { openMonitor, type Monitor } from './monitor.ts'
import { openShell, shellPort, type Shell } from './shell.ts'

/** A machine of its own: emulated hardware, Debian's kernel, systemd. */
export interface Machine {
  readonly shell: Shell
  readonly monitor: Monitor
  /** Process id of QEMU, which has a network namespace of its own. */
  readonly pid: number
  /** A folder of its own on the test machine. */
  readonly folder: string
  /** Kernel and systemd on the serial console. */
  console(): string
  /** Waits until it has booted again, after something that reboots it; only of a machine that reboots. */
  rebootBy(act: () => Promise<unknown>): Promise<void>
  /** Boots it again without a shutdown: its memory is lost, and what it has written to its disk stays. Only of a machine that reboots. */
  cutPower(): Promise<void>
  /** Ends the machine at once and removes everything of it. */
  unplug(): Promise<void>
}

/** What a machine is made of. */
export interface Parts {
  readonly image: Image
  /** Gives QEMU's arguments for all hardware but the disk of the root. @param folder for its files */
  hardware(folder: string): Promise<readonly string[]>
  /** A shell script that is run in QEMU's network namespace before it starts. */
  readonly prepare?: string
  /** Further arguments of the kernel. */
  readonly kernelArguments?: string
  /** Whether it boots again when its kernel restarts; otherwise QEMU ends. */
  readonly reboots?: boolean
}

/** Whether this test machine can start one: the emulated machine is a PC. */
export const canEmulate = process.arch === 'x64'

// Every unit that systemd waits for and every CPU mitigation costs seconds without a hypervisor.
const usualArguments =
  'console=ttyS0 quiet panic=1 mitigations=off nowatchdog tsc=reliable systemd.show_status=error fsck.mode=skip'

/** Starts a machine and waits until systemd has started everything, by emulation alone: half a minute. */
export async function startMachine(parts: Parts): Promise<Machine> {
  if (process.getuid?.() !== 0) throw new Error('starting machines needs root')
  const { image, prepare = '', kernelArguments = '', reboots = false } = parts
  const folder = await mkdtemp(join(tmpdir(), `edgehost-${process.pid}-`))
  const path = (name: string) => join(folder, name)
  const shell = await openShell(path('shell'))
  const monitor = await openMonitor(path('monitor'))
  const log = openSync(path('qemu'), 'a')
  const qemu = spawn(
    'setpriv',
    [
      // Ends with the test process in any case.
      ...['--pdeathsig', 'KILL', 'unshare', '--net', 'sh', '-euc'],
      ...[`ip link set lo up\n${prepare}\nexec "$@"`, 'sh'],
      ...['qemu-system-x86_64', '-nodefaults', '-no-user-config', '-display', 'none'],
      ...(reboots ? [] : ['-no-reboot']),
      ...['-machine', 'q35', '-accel', 'tcg,thread=multi', '-cpu', 'max,la57=off', '-smp', '2', '-m', '1024'],
      ...[
        '-uuid',
        randomUUID(),
        '-kernel',
        image.kernel,
        '-initrd',
        image.initramfs,
        '-append',
        `${usualArguments} ${kernelArguments}`,
      ],
      ...['-serial', `file:${path('console')}`],
      ...['-chardev', `socket,id=monitor,path=${path('monitor')}`, '-mon', 'chardev=monitor,mode=control'],
      ...['-chardev', `socket,id=shell,path=${path('shell')}`, '-device', 'virtio-serial-pci'],
      ...['-device', `virtserialport,chardev=shell,name=${shellPort}`],
      // Writes go to an unnamed file that ends with the process.
      ...['-drive', `if=none,id=root,format=raw,snapshot=on,file=${image.root}`],
      ...['-device', 'virtio-blk-pci,drive=root'],
      ...(await parts.hardware(folder)),
    ],
    { stdio: ['ignore', log, log], env: { PATH: systemPath, LC_ALL: 'C', TMPDIR: folder } },
  )
  closeSync(log)
  const ended = new Promise<void>((resolve) => qemu.once('exit', () => resolve()))
  const console = () => readFileSync(path('qemu'), 'utf8') + readConsole(path('console'))
  const unplug = async () => {
    qemu.kill('SIGKILL')
    await ended
    shell.close()
    monitor.close()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await Promise.race([
      started(shell),
      ended.then(() => {
        throw new Error('QEMU has ended')
      }),
    ])
    const rebootBy = async (act: () => Promise<unknown>) => {
      const former = await bootOf(shell)
      await act()
      await eventually(async () => {
        // The answer to a command that the machine had read before it went does not come.
        const boot = await Promise.race([bootOf(shell), sleep(5_000)])
        if (boot === undefined || boot === former) throw new Error(`not booted yet:\n${console()}`)
      }, 300_000)
      await started(shell)
    }
    return {
      ...{ shell, monitor, pid: qemu.pid!, folder, console, rebootBy, unplug },
      cutPower: () => rebootBy(() => monitor.execute('system_reset')),
    }
  } catch (error) {
    const shown = console()
    await unplug()
    throw new Error(`the machine has not started:\n${shown}`, { cause: error })
  }
}

const bootOf = async (shell: Shell) =>
  (await shell.run(['cat', '/proc/sys/kernel/random/boot_id'])).stdout.trim()

async function started(shell: Shell): Promise<void> {
  await eventually(async () => {
    const { stdout } = await shell.run(['systemctl', 'is-system-running', '--wait'], { timeoutMs: 200_000 })
    if (stdout.trim() === 'running') return
    const failed = await shell.run(['systemctl', 'list-units', '--failed', '--no-legend'])
    throw new Error(`${stdout.trim()}: ${failed.stdout}`)
  }, 1_000)
}

function readConsole(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    // QEMU ended before it opened its console.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
