import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { publicKeys } from '../../support/ssh-keys.ts'
import { bootEdgehostd, type Edgehostd } from '../host/edgehostd.ts'
import {
  addTimeServiceAndAccount,
  mechanic as account,
  ntpDropIn as dropIn,
  servedBy,
  timesyncd,
} from '../host/time-service.ts'

// The steps as the daemon starts them, with systemd's own time service and an account of the host; no cluster is needed for them.

const { ed25519, rsa } = publicKeys

let host: Edgehostd
beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await addTimeServiceAndAccount(host)
})
afterAll(() => host.unplug())

const step = async (action: string, order: object) => {
  const ended = await host.run(['/usr/lib/edgehostd/node', '/usr/lib/edgehostd/step.cjs', action], {
    input: JSON.stringify(order),
  })
  return { exitCode: ended.exitCode, said: ended.stdout.trim() }
}

describe('NTP servers', () => {
  const give = (...servers: string[]) => step('ntp-servers', { note: '/var/lib/edgehostd/ntp.json', servers })
  const served = () => servedBy(host)

  it('are refused with what to do while no time service runs', async () => {
    await host.sh(`systemctl stop ${timesyncd}`)
    expect(await give('10.77.0.2')).toEqual({
      exitCode: 1,
      said: expect.stringContaining('timedatectl set-ntp true') as string,
    })
    expect(await host.sh(`test -e ${dropIn} || echo none`)).toBe('none\n')
  })

  it('are those of the running service, in the place of its own, and are put back', async () => {
    await host.sh(`systemctl start ${timesyncd}`)
    expect(await served()).toBe('as 1 "10.77.0.9"')
    expect(await give('10.77.0.2', 'fd77::2')).toMatchObject({ exitCode: 0 })
    expect(await served()).toBe('as 2 "10.77.0.2" "fd77::2"')
    expect(await give('10.77.0.3')).toMatchObject({ exitCode: 0 })
    expect(await served()).toBe('as 1 "10.77.0.3"')
    expect(await give()).toMatchObject({ exitCode: 0 })
    expect(await served()).toBe('as 1 "10.77.0.9"')
    expect(
      await host.sh(`ls /etc/systemd/timesyncd.conf.d /var/lib/edgehostd/ntp.json 2> /dev/null || true`),
    ).toBe('/etc/systemd/timesyncd.conf.d:\nsite.conf\n')
  })
})

describe('SSH keys', () => {
  const order = (...keys: string[]) => ({ note: '/var/lib/edgehostd/keys.json', account, keys })
  const file = `/home/${account}/.ssh/authorized_keys2`
  const look = async (...keys: string[]) =>
    JSON.parse((await step('look-at-ssh-keys', order(...keys))).said) as {
      isApplied: boolean
      isDue: boolean
    }

  it('are a file of the account, which it can read and others cannot, and are taken away', async () => {
    expect(await look(ed25519)).toMatchObject({ isApplied: false, isDue: true })
    expect(await step('ssh-keys', order(ed25519, rsa))).toMatchObject({ exitCode: 0 })
    expect(await host.sh(`stat -c '%U:%G %a' ${file} /home/${account}/.ssh`)).toBe(
      `${account}:${account} 600\n${account}:${account} 700\n`,
    )
    // As sshd does, with the rights of the account.
    expect(
      await host.sh(`setpriv --reuid=${account} --regid=${account} --clear-groups cat ${file}`),
    ).toContain(`${ed25519}\n${rsa}\n`)
    expect(await look(ed25519, rsa)).toMatchObject({ isApplied: true, isDue: false })
    await host.sh(`echo '${rsa}' >> ${file}`)
    expect(await look(ed25519, rsa)).toMatchObject({ isApplied: false, isDue: true })
    expect(await step('ssh-keys', order(ed25519, rsa))).toMatchObject({ exitCode: 0 })
    expect(await look(ed25519, rsa)).toMatchObject({ isApplied: true })
    expect(await step('ssh-keys', order())).toMatchObject({ exitCode: 0 })
    expect(await host.sh(`test -e /home/${account}/.ssh || echo none`)).toBe('none\n')
  })

  it('the daemon itself, in its sandbox, cannot look into the home, and the program that it starts can', async () => {
    const inSandbox = await host.run([
      ...['systemd-run', '--pipe', '--wait', '--quiet', '--property=CapabilityBoundingSet=', '--', 'ls'],
      `/home/${account}`,
    ])
    expect(inSandbox.exitCode).not.toBe(0)
    expect(await look(ed25519)).toMatchObject({ isDue: true })
  })
})
