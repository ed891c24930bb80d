import { useState } from 'preact/hooks'
import type { Static } from 'typebox'
import type { ActivationLink, User } from '../../../platform/users/schemas.ts'
import { day, plain } from '../../shared/format.ts'
import { Confirm } from '../../shared/dialog.tsx'
import {
  AdminButton,
  Badge,
  Card,
  ChangeForm,
  Choice,
  Command,
  Entry,
  PagedList,
  PageHeader,
  Secret,
  useAction,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { usePages } from '../../shared/read.ts'
import { change, get } from '../../shared/request.ts'
import { highestRole, type Role } from '../../shared/session.ts'
import { sharedText } from '../../shared/texts.ts'
import { isTenantAdmin, remote, shellWord, text } from '../platform.ts'
import { TenantOnly } from './tenant-only.tsx'

const path = '/v1/users'

/** A link that was handed out, and for whom. */
interface HandedLink {
  readonly email: string
  readonly link: string
}

/** The page of this platform behind a link of the API; what stands behind `#` is sent nowhere. */
const pageOf = (activationLink: string): string => {
  const [, token = ''] = /\/password\/([^/]+)\/activate$/.exec(activationLink) ?? []
  return `${location.origin}/#/password/${token}`
}

/** Makes a link for a user, which ends an earlier one. @throws RequestError */
async function newLink(uid: string): Promise<string> {
  const reply = await change<Static<typeof ActivationLink>>('POST', `${path}/${uid}/activation`)
  return reply.activationLink
}

/** The users of the platform. */
export function Users() {
  const t = text.value.users
  const [handed, setHanded] = useState<HandedLink>()
  const users = usePages<User>(`${path}?orderBy=metadata.name=1`, 15_000)
  if (!isTenantAdmin()) return <TenantOnly title={t.title} command="user list" />
  return (
    <>
      <PageHeader title={t.title} />
      {handed && (
        <Secret text={handed.link}>
          <p role="status">{t.linkFor(handed.email)}</p>
        </Secret>
      )}
      <Card title={t.title} icon="access">
        <PagedList list={users} none={null}>
          {(items) => (
            <Table
              title={t.title}
              file="users"
              items={items}
              keyOf={({ metadata }) => metadata.uid}
              columns={[
                {
                  title: t.user,
                  cell: ({ spec: { emailId, firstName, lastName } }) => (
                    <>
                      {emailId}
                      <br />
                      <span class="dim">{plain(`${firstName} ${lastName}`.trim())}</span>
                    </>
                  ),
                },
                {
                  title: t.roles,
                  cell: ({ spec }) => {
                    const role = highestRole(spec.roles)
                    return role ? sharedText.value.roles[role] : <span class="dim">{t.noRole}</span>
                  },
                },
                {
                  title: t.state,
                  cell: ({ status }) =>
                    status.isPasswordResetting ? (
                      <Badge mood="warning">{t.asks}</Badge>
                    ) : (
                      <Badge mood={status.isActive ? 'good' : 'info'}>
                        {status.isActive ? t.active : t.inactive}
                      </Badge>
                    ),
                },
                {
                  title: t.signedIn,
                  cell: ({ status: { lastSignIn } }) =>
                    lastSignIn === undefined ? <span class="dim">{t.never}</span> : day(lastSignIn),
                },
                {
                  title: t.actions,
                  isAction: true,
                  cell: (user) => <Actions user={user} onChange={users.again} onLink={setHanded} />,
                },
              ]}
            />
          )}
        </PagedList>
      </Card>
      <CreateForm
        onCreated={(link) => {
          setHanded(link)
          users.again()
        }}
      />
    </>
  )
}

interface ActionsProps {
  readonly user: User
  readonly onChange: () => void
  readonly onLink: (link: HandedLink) => void
}

function Actions({ user: { metadata, spec }, onChange, onLink }: ActionsProps) {
  const t = text.value.users
  const [asked, setAsked] = useState<'link' | 'role' | 'delete'>()
  const [role, setRole] = useState<Role | ''>(highestRole(spec.roles) ?? '')
  const own = `${path}/${metadata.uid}`
  const email = spec.emailId
  const close = () => {
    setAsked(undefined)
    onChange()
  }
  async function renewLink() {
    onLink({ email, link: pageOf(await newLink(metadata.uid)) })
  }
  return (
    <>
      <div class="actions">
        <AdminButton kind="plain small" onClick={() => setAsked('link')}>
          {t.link}…
        </AdminButton>
        <AdminButton
          kind="plain small"
          onClick={() => {
            setRole(highestRole(spec.roles) ?? '')
            setAsked('role')
          }}
        >
          {t.role}…
        </AdminButton>
        <AdminButton kind="plain small" onClick={() => setAsked('delete')}>
          {t.delete}…
        </AdminButton>
      </div>
      {asked === 'link' && (
        <Confirm title={t.linkTitle(email)} action={t.link} onConfirm={renewLink} onClose={close}>
          <p>{t.linkLong}</p>
        </Confirm>
      )}
      {asked === 'role' && (
        <Confirm
          title={t.roleTitle(email)}
          action={t.save}
          onConfirm={() => change('PUT', `${own}/roles`, { roles: role === '' ? [] : [role] })}
          onClose={close}
        >
          <RoleChoice value={role} onChange={setRole} />
        </Confirm>
      )}
      {asked === 'delete' && (
        <Confirm
          title={t.deleteTitle(email)}
          action={t.delete}
          name={email}
          onConfirm={() => change('DELETE', own)}
          onClose={close}
        >
          <p>{t.deleteLong}</p>
        </Confirm>
      )}
    </>
  )
}

function RoleChoice({ value, onChange }: { value: Role | ''; onChange: (role: Role | '') => void }) {
  const t = text.value.users
  const titles = sharedText.value.roles
  return (
    <Choice
      label={t.roles}
      value={value}
      options={[
        ['', t.noRole],
        ...(['viewer', 'operator', 'admin'] as const).map((role) => [role, titles[role] ?? role] as const),
      ]}
      onChange={onChange}
    />
  )
}

function CreateForm({ onCreated }: { onCreated: (link: HandedLink) => void }) {
  const t = text.value.users
  const [email, setEmail] = useState('')
  const [firstName, setFirstName] = useState('')
  const [lastName, setLastName] = useState('')
  const [role, setRole] = useState<Role | ''>('')
  const action = useAction(
    async () => {
      const roles = role === '' ? [] : [role]
      const { uid } = await change<{ uid: string }>('POST', path, {
        spec: { emailId: email, firstName, lastName, roles },
      })
      // The first reading of a user has the link; where another one has read it, there is a new one.
      const { status } = await get<User>(`${path}/${uid}`)
      onCreated({ email, link: pageOf(status.activationLink ?? (await newLink(uid))) })
    },
    () => {
      setEmail('')
      setFirstName('')
      setLastName('')
      setRole('')
    },
  )
  const names = [
    ...(firstName === '' ? [] : [`--first-name ${shellWord(firstName)}`]),
    ...(lastName === '' ? [] : [`--last-name ${shellWord(lastName)}`]),
    ...(role === '' ? [] : [`--role ${role}`]),
  ]
  return (
    <>
      <Card title={t.create} icon="access">
        <ChangeForm action={action} submit={t.make} isOff={email === ''}>
          <Entry label={t.email} type="email" value={email} onChange={setEmail} isRequired />
          <Entry label={t.firstName} value={firstName} onChange={setFirstName} />
          <Entry label={t.lastName} value={lastName} onChange={setLastName} />
          <RoleChoice value={role} onChange={setRole} />
        </ChangeForm>
      </Card>
      <Command
        command={remote(['user create', email === '' ? 'EMAIL' : shellWord(email), ...names].join(' '))}
      />
    </>
  )
}
