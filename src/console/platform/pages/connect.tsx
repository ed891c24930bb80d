import { useState } from 'preact/hooks'
import type { Static } from 'typebox'
import type { PlatformStatus } from '../../../platform/system/schemas.ts'
import type { EdgeTokenCreated } from '../../../platform/tokens/schemas.ts'
import {
  Card,
  ChangeForm,
  Choice,
  Command,
  Entry,
  Fingerprint,
  OnlyAdministrators,
  PageHeader,
  Problem,
  Secret,
  Shown,
  useAction,
} from '../../shared/parts.tsx'
import { useReading } from '../../shared/read.ts'
import { change, hostNow } from '../../shared/request.ts'
import { hrefOf, placeProject } from '../../shared/shell.tsx'
import { isTenantAdmin, nameOfProject, remote, shellWord, text } from '../platform.ts'
import { projects } from '../session.ts'

const dayMs = 86_400_000
/** A token ends in ten years at the latest. */
const mostDays = 3_650

/** Makes a registration token, and says what to run on the hosts that it is for. */
export function Connect() {
  const t = text.value.connect
  if (isTenantAdmin())
    return (
      <>
        <PageHeader title={t.title}>{t.long}</PageHeader>
        <TokenForm />
      </>
    )
  return (
    <>
      <PageHeader title={t.title}>{t.long}</PageHeader>
      <OnlyAdministrators>{t.adminOnly}</OnlyAdministrators>
      <Command command={remote('token create NAME')} />
    </>
  )
}

/** A name that no earlier token has, such as `hosts-20261129-1410`. */
const freshName = () =>
  `hosts-${new Date(hostNow()).toISOString().slice(0, 16).replace(/[-:]/g, '').replace('T', '-')}`

function TokenForm() {
  const t = text.value.connect
  const [name, setName] = useState(freshName)
  const [project, setProject] = useState(placeProject.value ?? '')
  const [days, setDays] = useState('7')
  const [most, setMost] = useState('1')
  const [made, setMade] = useState<Static<typeof EdgeTokenCreated>>()
  const action = useAction(async () =>
    setMade(
      await change('POST', '/v1/edgehosts/tokens', {
        metadata: { name },
        spec: {
          defaultProjectUid: project,
          expiry: new Date(hostNow() + Number(days) * dayMs).toISOString(),
          maximumHosts: Number(most),
        },
      }),
    ),
  )
  if (made) return <Steps token={made.token} project={project} />
  const option = project === '' ? '' : ` --project ${shellWord(nameOfProject(project))}`
  return (
    <>
      <Card title={t.make} icon="key">
        <ChangeForm
          action={action}
          submit={t.make}
          isOff={!(Number(days) > 0 && Number(days) <= mostDays) || most === ''}
        >
          <Entry label={t.token} value={name} onChange={setName} isRequired />
          <Choice
            label={t.project}
            value={project}
            options={[
              ['', text.value.scope.tenant],
              ...projects.value.map(({ metadata }) => [metadata.uid, metadata.name] as const),
            ]}
            onChange={setProject}
          />
          <Entry label={t.days} type="number" value={days} onChange={setDays} isRequired />
          <Entry label={t.most} type="number" value={most} onChange={setMost} isRequired />
        </ChangeForm>
      </Card>
      <Command
        command={remote(
          `token create ${shellWord(name)}${option} --expiry +${days}d --maximum-hosts ${most}`,
        )}
      />
    </>
  )
}

function Steps({ token, project }: { token: string; project: string }) {
  const t = text.value.connect
  const status = useReading<PlatformStatus>('/v1/system/status', 60_000)
  const connect = `sudo edgehostctl platform connect ${location.origin} --token-file token`
  return (
    <>
      <Secret text={token}>
        <p role="status">{t.made}</p>
      </Secret>
      <Card title={t.steps} icon="terminal">
        <div class="pad stack">
          <Command title={t.write} command={`(umask 077; printf '%s\\n' ${token} > token)`} />
          {status.error ? (
            <Problem error={status.error} again={status.again} />
          ) : (
            <Shown reading={status} lines={2}>
              {({ certificate: { isOwn, fingerprint } }) => (
                <>
                  <Command
                    title={t.run}
                    command={isOwn ? `${connect} --fingerprint ${fingerprint}` : connect}
                  />
                  {isOwn ? (
                    <p class="dim">
                      {t.fingerprint} <Fingerprint text={fingerprint} />
                    </p>
                  ) : (
                    <p class="dim">{t.authority}</p>
                  )}
                </>
              )}
            </Shown>
          )}
          <p class="dim">{t.appears}</p>
          <div class="buttons">
            <a class="button primary" href={hrefOf('/hosts', project)}>
              {t.toList}
            </a>
          </div>
        </div>
      </Card>
    </>
  )
}
