import { useState } from 'preact/hooks'
import type { Static } from 'typebox'
import type { CurrentUser, SessionItem } from '../../../auth/schemas.ts'
import { day } from '../../shared/format.ts'
import { Confirm } from '../../shared/dialog.tsx'
import {
  AdminButton,
  Card,
  ChangeForm,
  Command,
  More,
  Lines,
  Note,
  PageHeader,
  Shown,
  useAction,
} from '../../shared/parts.tsx'
import { Table } from '../../shared/table.tsx'
import { useList, useReading, type ListReading } from '../../shared/read.ts'
import { change } from '../../shared/request.ts'
import { hasEnded, user } from '../../shared/session.ts'
import { sharedText } from '../../shared/texts.ts'
import { remote, text } from '../host.tsx'

export function Access() {
  const t = text.value.access
  const sessions = useList<SessionItem>('/v1/users/sessions', 15_000)
  return (
    <>
      <PageHeader title={t.title} />
      <Card title={t.sessions} icon="access">
        <Shown reading={sessions}>{() => <Sessions sessions={sessions} />}</Shown>
      </Card>
      <div class="grid">
        <Card title={t.password} icon="key" width="half">
          <PasswordForm />
        </Card>
        <Card title={t.keys} icon="terminal" width="half">
          <SshKeys />
        </Card>
      </div>
      <Command command={remote('session list')} />
    </>
  )
}

function Sessions({ sessions }: { sessions: ListReading<SessionItem> }) {
  const t = text.value.access
  const [ended, setEnded] = useState<SessionItem>()
  const close = () => {
    setEnded(undefined)
    sessions.again()
  }
  return (
    <>
      <Table
        title={t.sessions}
        items={sessions.items}
        keyOf={({ uid }) => uid}
        columns={[
          {
            title: t.user,
            cell: ({ userName, role, isCurrent }) => (
              <>
                {userName} <span class="dim">{sharedText.value.roles[role]}</span>
                {isCurrent && <span class="tag">{t.thisOne}</span>}
              </>
            ),
          },
          { title: t.from, cell: ({ address }) => address },
          { title: t.since, cell: ({ creationTimestamp }) => day(creationTimestamp) },
          { title: t.until, cell: ({ expirationTimestamp }) => day(expirationTimestamp) },
          {
            title: t.end,
            isAction: true,
            // A user ends the own sessions; an administrator all.
            cell: (session) =>
              session.userName === user.value?.userName ? (
                <button type="button" class="plain small" onClick={() => setEnded(session)}>
                  {t.end}…
                </button>
              ) : (
                <AdminButton kind="plain small" onClick={() => setEnded(session)}>
                  {t.end}…
                </AdminButton>
              ),
          },
        ]}
      />
      <More list={sessions} />
      {ended && (
        <Confirm
          title={t.endTitle(ended.userName)}
          action={t.end}
          onConfirm={() => change('DELETE', `/v1/users/sessions/${ended.uid}`)}
          onClose={close}
        >
          <p>{t.endLong}</p>
        </Confirm>
      )}
    </>
  )
}

function PasswordForm() {
  const t = text.value.access
  const [old, setOld] = useState('')
  const [fresh, setFresh] = useState('')
  const [isChanged, setChanged] = useState(false)
  const action = useAction(
    () =>
      change(
        'POST',
        '/v1/users/default/password/reset',
        { oldPassword: old, newPassword: fresh },
        {
          timeoutMs: 60_000,
        },
      ),
    () => {
      setOld('')
      setFresh('')
      setChanged(true)
      // Its session has ended with the others of the account.
      hasEnded.value = true
    },
  )
  return (
    <ChangeForm action={action} submit={sharedText.value.setPassword}>
      <p class="dim">{t.passwordLong}</p>
      <input
        class="hidden"
        autocomplete="username"
        value={user.value?.userName ?? ''}
        readOnly
        tabIndex={-1}
        aria-label={t.user}
      />
      <label class="field">
        <span>{t.old}</span>
        <input
          type="password"
          autocomplete="current-password"
          required
          value={old}
          onInput={(event) => setOld(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span>{sharedText.value.newPassword}</span>
        <input
          type="password"
          autocomplete="new-password"
          required
          value={fresh}
          onInput={(event) => setFresh(event.currentTarget.value)}
        />
      </label>
      {isChanged && (
        <Note mood="good">
          <p role="status">{t.changed}</p>
        </Note>
      )}
    </ChangeForm>
  )
}

function SshKeys() {
  const t = text.value.access
  const reading = useReading<Static<typeof CurrentUser>>('/v1/users/current', 600_000)
  const [given, setGiven] = useState<string>()
  const [password, setPassword] = useState('')
  const [isSaved, setSaved] = useState(false)
  const held = (reading.body?.sshKeys ?? []).join('\n')
  const keys = (given ?? held).split('\n').map((line) => line.trim())
  const action = useAction(
    () =>
      change('PATCH', '/v1/users/current', {
        sshKeys: keys.filter((key) => key !== ''),
        ...(password === '' ? {} : { password }),
      }),
    () => {
      setGiven(undefined)
      setPassword('')
      setSaved(true)
      reading.again()
    },
  )
  return (
    <Shown reading={reading} lines={4}>
      {() => (
        <ChangeForm action={action} submit={t.save} isOff={given === undefined}>
          <Lines
            label={t.keys}
            hint={t.keysLong}
            value={given ?? held}
            rows={5}
            onChange={(value) => {
              setSaved(false)
              setGiven(value)
            }}
          />
          <label class="field">
            <span>{t.keysPassword}</span>
            <input
              type="password"
              autocomplete="current-password"
              value={password}
              onInput={(event) => setPassword(event.currentTarget.value)}
            />
          </label>
          {isSaved && (
            <Note mood="good">
              <p role="status">{t.saved}</p>
            </Note>
          )}
        </ChangeForm>
      )}
    </Shown>
  )
}
