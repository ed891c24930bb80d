// Settings that the cluster gives to this host, labels and taints of its node, the kubeconfig, and the certificates of Kubernetes.
import { useEffect, useState } from 'preact/hooks'
import type {
  CertificateDetails,
  ClusterConfiguration,
  ClusterDetails,
  RenewalAccepted,
} from '../../../cluster/schemas.ts'
import { day, plain } from '../../shared/format.ts'
import { Confirm } from '../../shared/dialog.tsx'
import {
  AdminButton,
  Badge,
  Card,
  ChangeForm,
  Command,
  Lines,
  linesOf,
  Note,
  PageHeader,
  Shown,
  useAction,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { useReading, type Reading } from '../../shared/read.ts'
import { change, get, ifMatch } from '../../shared/request.ts'
import { isAdmin } from '../../shared/session.ts'
import { clusterPath, DownloadButton, remote, text } from '../host.tsx'
import { NodeForm } from './cluster-node.tsx'

export function ClusterAccess() {
  const t = text.value.clusterAccess
  const details = useReading<ClusterDetails>(`${clusterPath}/details?kubeconfig=false`, 10_000)
  const configuration = useReading<ClusterConfiguration>(isAdmin.value ? clusterPath : undefined, 60_000)
  return (
    <>
      <PageHeader title={t.title} />
      <div class="grid">
        <Card title={t.settings} icon="system" width="half">
          <Shown reading={details}>{(body) => <Settings details={body} onDone={details.again} />}</Shown>
        </Card>
        <Card title={t.kubeconfig} icon="key" width="half">
          <div class="pad form">
            <p>{t.kubeconfigLong}</p>
            <div class="buttons">
              <DownloadButton path={`${clusterPath}/kubeconfig`}>{t.download}</DownloadButton>
            </div>
          </div>
        </Card>
        {isAdmin.value && (
          <Card title={text.value.node.title} icon="host" width="half">
            <Shown reading={configuration}>
              {(body) => <NodeForm present={body} onDone={configuration.again} />}
            </Shown>
          </Card>
        )}
      </div>
      <Certificates />
      <Command command={remote('cluster settings --ntp SERVER --ssh-key FILE')} />
    </>
  )
}

/** Both lists are replaced together, as the host takes them. */
function Settings({ details: { spec, status }, onDone }: { details: ClusterDetails; onDone: () => void }) {
  const t = text.value.clusterAccess
  const present = { ntpServers: spec.ntpServers.join('\n'), sshKeys: spec.sshKeys.join('\n') }
  const [fields, setFields] = useState<Partial<typeof present>>({})
  const shown = { ...present, ...fields }
  const [isSaved, setSaved] = useState(false)
  useEffect(() => setSaved(false), [fields])
  const action = useAction(
    async () => {
      await get(clusterPath)
      await change(
        'PUT',
        `${clusterPath}/settings`,
        { ntpServers: linesOf(shown.ntpServers), sshKeys: linesOf(shown.sshKeys) },
        ifMatch(clusterPath),
      )
    },
    () => {
      setFields({})
      setSaved(true)
      onDone()
    },
  )
  const isChanged = shown.ntpServers !== present.ntpServers || shown.sshKeys !== present.sshKeys
  const reasonOf = (type: string) =>
    status.clusterConditions.find((each) => each.type === type && each.status === 'False')?.message
  const reasons = {
    ntpServers: status.ntpServersApplied ? undefined : reasonOf('NtpServersApplied'),
    sshKeys: status.sshKeysApplied ? undefined : reasonOf('SshKeysApplied'),
  }
  const area = (name: keyof typeof present, title: string) => (
    <>
      <Lines
        label={title}
        value={shown[name]}
        isReadOnly={!isAdmin.value}
        onChange={(value) => setFields({ ...fields, [name]: value })}
      />
      {reasons[name] !== undefined && (
        <Note mood="warning">
          <p>{plain(reasons[name])}</p>
        </Note>
      )}
    </>
  )
  return (
    <ChangeForm action={action} submit={isAdmin.value ? t.save : undefined} isOff={!isChanged}>
      {area('ntpServers', t.ntpServers)}
      {area('sshKeys', t.sshKeys)}
      {isSaved && <p role="status">{t.saved}</p>}
    </ChangeForm>
  )
}

function Certificates() {
  const t = text.value.clusterAccess
  const certificates = useReading<CertificateDetails>(`${clusterPath}/certificates`, 20_000)
  const [isAsking, setAsking] = useState(false)
  const rows = (certificates.body?.certificates ?? []).flatMap(({ childCerts, ...authority }) => [
    { ...authority, issuer: '' },
    ...childCerts.map((each) => ({ ...each, issuer: authority.name })),
  ])
  return (
    <Card
      title={t.certificates}
      icon="key"
      aside={
        <AdminButton kind="plain small" isOff={isRenewing(certificates)} onClick={() => setAsking(true)}>
          {t.renew}…
        </AdminButton>
      }
    >
      <Shown reading={certificates}>
        {({ problems, renewal, earliestAutoRenewalTime, needsRenewal }) => (
          <>
            {problems.map((problem) => (
              <Note key={problem} mood="warning">
                <p>{plain(problem)}</p>
              </Note>
            ))}
            {renewal?.reason !== undefined && (
              <Note mood="bad">
                <p>{plain(renewal.reason)}</p>
              </Note>
            )}
            <p class="dim">
              {isRenewing(certificates)
                ? t.renewing
                : needsRenewal
                  ? t.due
                  : earliestAutoRenewalTime === undefined
                    ? t.none
                    : t.renewedAt(day(earliestAutoRenewalTime))}
            </p>
            {rows.length > 0 && (
              <Table
                title={t.certificates}
                items={rows}
                keyOf={({ name, issuer }) => `${issuer} ${name}`}
                columns={[
                  { title: t.name, cell: ({ name }) => name },
                  {
                    title: t.issuer,
                    cell: ({ issuer }) => (issuer === '' ? <Badge mood="info">{t.authority}</Badge> : issuer),
                  },
                  { title: t.until, cell: ({ expirationDate }) => day(expirationDate) },
                ]}
              />
            )}
          </>
        )}
      </Shown>
      {isAsking && (
        <Confirm
          title={t.renew}
          action={t.renew}
          onConfirm={() => change<RenewalAccepted>('POST', `${clusterPath}/renew-certificates`)}
          onClose={() => {
            setAsking(false)
            certificates.again()
          }}
        >
          <p>{t.renewLong}</p>
        </Confirm>
      )}
    </Card>
  )
}

const isRenewing = ({ body }: Reading<CertificateDetails>) =>
  body?.renewal !== undefined && body.renewal.endTimestamp === undefined
