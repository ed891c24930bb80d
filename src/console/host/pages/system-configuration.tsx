// How the host reaches others: its name, time servers, proxy, authorities, and the platform that manages it.
import { useState } from 'preact/hooks'
import type {
  ConfigurationAccepted,
  ConfigurationDryRun,
  EdgeHostConfigurations,
  EdgeHostConfigurationStatus,
} from '../../../configuration/schemas.ts'
import type { HostName, HostTime } from '../../../setup/schemas.ts'
import type { PlatformLink } from '../../../uplink/schemas.ts'
import { day, plain } from '../../shared/format.ts'
import {
  Badge,
  Card,
  ChangeForm,
  Command,
  Entry,
  Facts,
  Lines,
  Note,
  PageHeader,
  Shown,
  useAction,
  type Mood,
} from '../../shared/parts.tsx'
import { useFound, useReading } from '../../shared/read.ts'
import { change } from '../../shared/request.ts'
import { isAdmin } from '../../shared/session.ts'
import { api, hostPath, remote, text } from '../host.tsx'

export function Configuration() {
  const t = text.value.configuration
  return (
    <>
      <PageHeader title={t.title} />
      <div class="grid">
        <Card title={t.hostName} icon="host" width="half">
          <HostNameForm />
        </Card>
        <Card title={t.time} icon="system" width="half">
          <TimeForm />
        </Card>
      </div>
      <Proxy />
      <Link />
      <Command command={remote('configuration set --http-proxy URL')} />
    </>
  )
}

function HostNameForm() {
  const t = text.value.configuration
  const reading = useReading<HostName>(`${hostPath}/hostname`, 30_000)
  const [name, setName] = useState<string>()
  const action = useAction(
    () => change('PUT', `${hostPath}/hostname`, { hostName: name }),
    () => {
      setName(undefined)
      reading.again()
    },
  )
  return (
    <Shown reading={reading} lines={1}>
      {({ hostName }) => (
        <ChangeForm
          action={action}
          submit={isAdmin.value ? t.save : undefined}
          isOff={name === undefined || name === hostName}
        >
          <Entry
            label={t.hostName}
            value={name ?? hostName}
            onChange={setName}
            isReadOnly={!isAdmin.value}
            maxLength={64}
            hint={t.hostNameLong}
          />
        </ChangeForm>
      )}
    </Shown>
  )
}

function TimeForm() {
  const t = text.value.configuration
  const reading = useReading<HostTime>(`${hostPath}/time`, 30_000)
  const [servers, setServers] = useState<string>()
  const action = useAction(
    () => change('PUT', `${hostPath}/time`, { ntpServers: (servers ?? '').split(/[\s,]+/).filter(Boolean) }),
    () => {
      setServers(undefined)
      reading.again()
    },
  )
  return (
    <Shown reading={reading} lines={1}>
      {({ ntpServers, service, problem }) => (
        <ChangeForm
          action={action}
          submit={isAdmin.value ? t.save : undefined}
          isOff={servers === undefined || service === undefined}
        >
          <Entry
            label={t.timeServers}
            value={servers ?? ntpServers.join(' ')}
            onChange={setServers}
            isReadOnly={!isAdmin.value || service === undefined}
            hint={service === undefined ? plain(problem ?? '') : t.timeLong(service)}
          />
        </ChangeForm>
      )}
    </Shown>
  )
}

const moodOfState: Readonly<Record<EdgeHostConfigurationStatus['state'], Mood>> = {
  'Not Configured': 'info',
  'In Progress': 'info',
  Configured: 'good',
  Failed: 'bad',
}

/** PEM of authorities, as a person pastes it, each as the API takes it. */
function authoritiesIn(written: string): string[] {
  const block = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g
  const whole = written.match(block) ?? []
  // The host says what is wrong with the rest; words between certificates do no harm.
  const rest = written.replace(block, '').trim()
  const isPart = rest.includes('-----BEGIN') || (whole.length === 0 && rest !== '')
  return [...whole, ...(isPart ? [rest] : [])].map((pem) =>
    btoa(String.fromCodePoint(...new TextEncoder().encode(`${pem}\n`))),
  )
}

/** PEM in base64, as people read it. */
function pemOf(encoded: string): string {
  try {
    return atob(encoded).trim()
  } catch {
    return encoded
  }
}

function Proxy() {
  const t = text.value.configuration
  const reading = useReading<EdgeHostConfigurations>(`${hostPath}/configurations`, 30_000)
  const status = useReading<EdgeHostConfigurationStatus>(`${hostPath}/configurations/status`, 5_000)
  return (
    <Card
      title={t.proxy}
      icon="link"
      aside={
        status.body && (
          <Badge mood={moodOfState[status.body.state]}>
            {t.states[status.body.state] ?? status.body.state}
          </Badge>
        )
      }
    >
      {status.body?.errorMessage !== undefined && (
        <Note mood="bad">
          <p>{plain(status.body.errorMessage)}</p>
        </Note>
      )}
      {status.body?.waitsFor !== undefined && (
        <Note mood="info">
          <p>{t.waits(plain(status.body.waitsFor))}</p>
        </Note>
      )}
      <Shown reading={reading}>
        {(present) => (
          <ProxyForm
            key={JSON.stringify(present)}
            present={present}
            onDone={() => {
              reading.again()
              status.again()
            }}
          />
        )}
      </Shown>
    </Card>
  )
}

function ProxyForm({ present, onDone }: { present: EdgeHostConfigurations; onDone: () => void }) {
  const t = text.value.configuration
  const [fields, setFields] = useState({
    httpProxy: present.httpProxy ?? '',
    httpsProxy: present.httpsProxy ?? '',
    noProxy: present.noProxy ?? '',
    caCerts: (present.caCerts ?? []).map(pemOf).join('\n'),
  })
  const [plan, setPlan] = useFound<ConfigurationDryRun>(fields)
  const body = () => ({ ...fields, caCerts: authoritiesIn(fields.caCerts) })
  const path = `${hostPath}/configurations`
  const action = useAction(async () => {
    if (!plan) {
      setPlan(await change<ConfigurationDryRun>('PUT', `${path}?dryRun=true`, body()))
      return
    }
    await change<ConfigurationAccepted>('PUT', path, body())
    onDone()
  })
  const mayGo = plan !== undefined && plan.changes.length > 0
  const field = (name: 'httpProxy' | 'httpsProxy' | 'noProxy', hint?: string) => (
    <Entry
      label={t[name]}
      value={fields[name]}
      onChange={(value) => setFields({ ...fields, [name]: value })}
      isReadOnly={!isAdmin.value}
      {...(hint === undefined ? {} : { hint })}
    />
  )
  return (
    <ChangeForm
      action={action}
      submit={isAdmin.value ? (plan ? t.apply : t.check) : undefined}
      isOff={plan !== undefined && !mayGo}
    >
      {field('httpProxy')}
      {field('httpsProxy')}
      {field('noProxy', t.noProxyLong)}
      <Lines
        label={t.authorities}
        value={fields.caCerts}
        rows={4}
        hint={t.authoritiesLong}
        isReadOnly={!isAdmin.value}
        onChange={(caCerts) => setFields({ ...fields, caCerts })}
      />
      {plan && (
        <Note mood={mayGo ? 'warning' : 'info'}>
          <p role="status">{mayGo ? plan.changes.map(plain).join(', ') : t.same}</p>
          {plan.restarts.length > 0 && <p>{t.restarts(plan.restarts.join(', '))}</p>}
        </Note>
      )}
    </ChangeForm>
  )
}

/** The platform of this host, and how it gets one. */
function Link() {
  const t = text.value.configuration
  const reading = useReading<PlatformLink>(`${api}/platform`, 10_000)
  return (
    <Card title={t.platform} icon="link">
      <Shown reading={reading}>
        {(link) =>
          link.mode === 'airgap' ? (
            <ConnectForm onDone={reading.again} />
          ) : (
            <>
              {link.cause && (
                <Note mood="warning">
                  <p>{plain(link.cause.message)}</p>
                </Note>
              )}
              <Facts
                facts={[
                  [t.address, link.url && plain(link.url)],
                  [t.connection, link.isConnected ? t.connected : t.notConnected],
                  [t.project, link.projectName && plain(link.projectName)],
                  [t.lastContact, link.lastContactTimestamp && day(link.lastContactTimestamp)],
                  [t.nextTry, link.nextAttemptTimestamp && day(link.nextAttemptTimestamp)],
                ]}
              />
              <p class="dim">{t.disconnectLong}</p>
            </>
          )
        }
      </Shown>
    </Card>
  )
}

function ConnectForm({ onDone }: { onDone: () => void }) {
  const t = text.value.configuration
  const [endpoint, setEndpoint] = useState('')
  const [token, setToken] = useState('')
  const action = useAction(
    () =>
      change(
        'PUT',
        `${hostPath}/userdata`,
        {
          v1Management: {
            type: 'central',
            platformEndpoint: endpoint,
            ...(token === '' ? {} : { edgeHostToken: token }),
          },
        },
        // The platform is asked before anything is changed.
        { timeoutMs: 120_000 },
      ),
    onDone,
  )
  if (!isAdmin.value) return <p class="dim">{t.airgap}</p>
  return (
    <ChangeForm action={action} submit={t.connect} isOff={endpoint === ''}>
      <p class="dim">{t.connectLong}</p>
      <Entry label={t.address} type="url" placeholder="https://" value={endpoint} onChange={setEndpoint} />
      <Entry label={t.token} type="password" value={token} onChange={setToken} />
    </ChangeForm>
  )
}
